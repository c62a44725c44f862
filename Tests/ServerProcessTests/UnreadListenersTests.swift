import Foundation
import Martlet
import SocketTalk
import Testing
import Waiting

/// Listeners that are sent long records and read nothing.
@Suite("Listeners that read nothing", .timeLimit(.minutes(5)))
struct UnreadListenersTests {
    private static let listeners = 120
    /// Resident bytes of the server at most: 256 MiB of answers that wait, those in the making, and the change
    /// sets in memory. If a listener held a copy of its batch, the server would need more.
    private static let mostBytes = 640 << 20

    private static let socket = """
        Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: \(TestSocket.key)\r\n
        """

    @Test(
        "cost only what the limit of waiting bytes allows",
        arguments: ["Accept: text/event-stream\r\n", socket])
    func unread(fields: String) async throws {
        let server = try ServerProcess()
        try await server.start()
        let writer = try await server.client("writer")
        for number: Int64 in 0..<3 {
            let label = String(repeating: "giant ", count: 1_500_000)
            try await writer.write {
                try $0.insert(
                    "marks",
                    ["writer": 1, "number": .integer(number), "edits": 0, "label": .text(label)])
            }
            try await writer.sync()
        }
        let port = try #require(try await server.address.port)
        var connections: [RawConnection] = []
        defer { for connection in connections { connection.close() } }
        for number in 0..<Self.listeners {
            // Each wants another batch than the one before, from another address than most.
            let connection = try #require(
                RawConnection(to: port, from: "127.0.0.\(2 + number % 4)"))
            connections.append(connection)
            connection.send(
                [UInt8](
                    """
                    GET /deltas?since=\(number % 3) HTTP/1.1\r\nHost: h\r\n\
                    Authorization: Bearer \(ServerProcess.token)\r\n\(fields)\r\n
                    """.utf8))
        }
        // About 45 of them fill what may wait.
        try await waitUntil("most that is too much was cut") {
            try await server.metric("martlet_answers_cut_total") >= Self.listeners - 60
        }
        let peak = try await server.peakMemory()
        #expect(peak < Self.mostBytes, "\(peak >> 20) MiB")
        #expect(try await server.metric("martlet_waiting_bytes") > 100 << 20)
        await writer.close()
        #expect(await server.stop() == 0)
    }
}
