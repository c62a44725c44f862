import SocketTalk
import Testing
import Waiting

@testable import HTTPKit

/// Clients that ask for much and read nothing: their answers wait in the server's memory.
@Suite("Answers that clients do not read", .timeLimit(.minutes(5)))
struct UnreadAnswersTests {
    private static let piece = [UInt8](repeating: 65, count: 12 << 20)
    private static let limit = 48 << 20

    private static func answer(_ request: HTTPRequest) async -> HTTPResponse {
        if request.path == "/socket", let handshake = try? WebSocketHandshake(request) {
            return .webSocket(handshake, maxMessageByteCount: 10) { socket in
                await socket.allowMessages(upTo: 10, of: "greedy")
                try? await socket.send(piece)
                _ = await socket.receive()
            }
        }
        var response = HTTPResponse(status: 200)
        if request.path == "/stream" {
            response.stream = { try await $0.write(piece) }
        } else {
            response.body = [piece]
        }
        response.party = request.path == "/patient" ? "patient" : "greedy"
        return response
    }

    @Test(
        "take no more memory than they may, and nothing from clients that read",
        arguments: ["/whole", "/stream", "/socket"])
    func boundedMemory(path: String) async throws {
        try await withServer {
            $0.maxWaitingBytes = Self.limit
        } handler: {
            await Self.answer($0)
        } _: { server, port in
            let patient = RawClient(port: port)
            await patient.send("GET /patient HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
            try await waitUntil("the patient client's answer waits") {
                await server.counters().waitingBytes > 0
            }
            var greedy = (0..<24).map { _ in RawClient(port: port) }
            let request =
                path == "/socket"
                ? TestSocket.request(path) : "GET \(path) HTTP/1.1\r\nHost: h\r\n\r\n"
            var most = 0
            for client in greedy {
                await client.send(request)
                most = max(most, await server.counters().waitingBytes)
            }
            try await waitUntil("connections were cut") {
                await server.counters().cutAnswers >= 24 - Self.limit / (8 << 20)
            }
            most = max(most, await server.counters().waitingBytes)
            #expect(most <= Self.limit)
            let all = await patient.readBytes()
            #expect(all.count > Self.piece.count)
            // What waited for connections that are gone waits no more.
            greedy = []
            try await waitUntil("nothing waits") { await server.counters().waitingBytes == 0 }
        }
    }

    @Test("are those of the slowest client first, if all are one party's")
    func slowest() async throws {
        try await withServer {
            $0.maxWaitingBytes = Self.limit
        } handler: {
            await Self.answer($0)
        } _: { server, port in
            let request = "GET /whole HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
            let silent = RawClient(port: port)
            await silent.send(request)
            try await waitUntil("its answer waits") { await server.counters().waitingBytes > 0 }
            let reader = RawClient(port: port)
            await reader.send(request)
            var count = await reader.read(atLeast: 4 << 20).count
            var others: [RawClient] = []
            while await server.counters().cutAnswers == 0, others.count < 12 {
                let before = await server.counters().waitingBytes
                others.append(RawClient(port: port))
                await others.last?.send(request)
                try await waitUntil("another answer waits, or one was cut") {
                    let counters = await server.counters()
                    return counters.waitingBytes > before || counters.cutAnswers > 0
                }
            }
            #expect(await silent.readBytes().count < Self.piece.count)
            count += await reader.readBytes().count
            #expect(count > Self.piece.count)
        }
    }
}
