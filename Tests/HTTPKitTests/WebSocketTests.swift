import HTTPKit
import SocketTalk
import Testing
import Waiting
import WebSocketKit

/// Sends each message back; “bye” is answered by closing with 4000.
@Sendable private func parrot(_ request: HTTPRequest) async -> HTTPResponse {
    do throws(HTTPRefusal) {
        guard let handshake = try WebSocketHandshake(request) else { return await echo(request) }
        return .webSocket(handshake, maxMessageByteCount: 100_000) { socket in
            while let message = await socket.receive() {
                guard case .text(let text) = message else {
                    return await socket.close(.unsupportedData, "Text, please.")
                }
                if text == Array("bye".utf8) {
                    return await socket.close(WebSocketCode(rawValue: 4000), "Bye.")
                }
                do { try await socket.send(text) } catch { return }
            }
        }
    } catch {
        return HTTPRefusal.plainText(error)
    }
}

/// Runs `body` against a server that is a parrot.
private func withParrot(
    _ configure: (inout HTTPServerOptions) -> Void = { _ in },
    _ body: (HTTPServer, Int) async throws -> Void
) async throws {
    try await withServer(configure, handler: parrot, body)
}

@Suite("WebSockets over HTTP")
struct WebSocketTests {
    @Test("a connection becomes a WebSocket, carries messages both ways and is closed politely")
    func exchangeOfMessages() async throws {
        try await withParrot { server, port in
            let socket = TestSocket(RawClient(port: port))
            let head = await socket.open("/talk")
            #expect(head.hasPrefix("HTTP/1.1 101 Switching Protocols\r\n"))
            #expect(head.contains("Sec-WebSocket-Accept: \(TestSocket.accept)\r\n"))
            #expect(!head.contains("Sec-WebSocket-Extensions"))
            for text in ["", "hello", String(repeating: "né", count: 30_000)] {
                await socket.say(text)
                #expect(await socket.text() == text)
            }
            #expect(await server.counters().openWebSockets == 1)
            #expect(await server.counters().webSocketMessagesSent == 3)
            await socket.close(.normal)
            #expect(await socket.closeCode() == .normal)
            #expect(await socket.isEnded())
            #expect(await server.counters().openWebSockets == 0)
        }
    }

    @Test("messages sent with the request, and bytes one at a time, arrive")
    func earlyAndSlow() async throws {
        try await withParrot { _, port in
            let client = RawClient(port: port)
            let socket = TestSocket(client)
            let early = RawFrame.text("early").bytes
            await client.send(
                Array(TestSocket.request("/").utf8) + early
                    + RawFrame.text("sl", isFinal: false).bytes)
            for byte in RawFrame.ping("p").bytes + RawFrame.rest("ow").bytes {
                await client.send([byte])
            }
            let seen = await client.read(until: "slow")
            #expect(seen.contains("early"))
            await client.send("")
            await socket.send(RawFrame.text("bye").bytes)
            #expect(await socket.closeCode() == WebSocketCode(rawValue: 4000))
        }
    }

    @Test(
        "a request that asks wrongly is refused",
        arguments: [
            ("Upgrade: websocket\r\nConnection: Upgrade\r\n", 426),
            ("Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 8\r\n", 426),
            ("Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n", 400),
            ("Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n", 400),
            (
                """
                Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                Sec-WebSocket-Key: short\r\n
                """, 400
            ),
            (
                """
                Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\
                Sec-WebSocket-Key: \(TestSocket.key)\r\nSec-WebSocket-Key: \(TestSocket.key)\r\n
                """, 400
            ),
            ("Upgrade: h2c\r\nConnection: Upgrade\r\n", 200),
        ])
    func refusedUpgrade(headers: String, status: Int) async throws {
        try await withParrot { _, port in
            let client = RawClient(port: port)
            await client.send("GET / HTTP/1.1\r\nHost: h\r\n\(headers)\r\n")
            #expect(await client.read(until: "\r\n\r\n").hasPrefix("HTTP/1.1 \(status) "))
        }
    }

    @Test(
        "what breaks the protocol is answered with its code, and the connection ends",
        arguments: [
            (RawFrame(opcode: 1, payload: [65], mask: nil), WebSocketCode.protocolError),
            (RawFrame(reserved: 4, opcode: 1), .protocolError),
            (RawFrame(isFinal: false, opcode: 9), .protocolError),
            (RawFrame(opcode: 1, claimed: 1 << 63), .protocolError),
            (RawFrame(opcode: 1, payload: [0xc0]), .invalidText),
            (RawFrame(opcode: 1, payload: [65], claimed: 100_001), .tooBig),
            (RawFrame(opcode: 2, payload: [65]), .unsupportedData),
        ])
    func faults(frame: RawFrame, code: WebSocketCode) async throws {
        try await withParrot { server, port in
            let socket = TestSocket(RawClient(port: port))
            _ = await socket.open("/")
            await socket.send(frame.bytes)
            #expect(await socket.closeCode() == code)
            if code == .unsupportedData { await socket.close(code) }
            #expect(await socket.isEnded())
            #expect(
                await server.counters().webSocketFaults == (code == .unsupportedData ? 0 : 1))
        }
    }

    @Test("a client that gives no sign of life is cut")
    func silentClientIsCut() async throws {
        try await withParrot {
            $0.webSocket.pingInterval = .milliseconds(50)
            $0.webSocket.pongTimeout = .milliseconds(50)
        } _: { server, port in
            let client = RawClient(port: port)
            await client.send(TestSocket.request("/"))
            // The stream ends, without a closing frame.
            let seen = await client.readBytes()
            #expect(seen.suffix(2) == [0x89, 0])
            #expect(await server.counters().webSocketsLost == 1)
        }
    }

    @Test("a client that answers pings is asked again and again, and stays")
    func lively() async throws {
        try await withParrot {
            $0.webSocket.pingInterval = .milliseconds(10)
            $0.webSocket.pongTimeout = .seconds(3_600)
        } _: { server, port in
            let socket = TestSocket(RawClient(port: port))
            _ = await socket.open("/")
            #expect(await Self.pings(5, socket) == 5)
            await socket.say("still here")
            #expect(await socket.text() == "still here")
            #expect(await server.counters().webSocketsLost == 0)
        }
    }

    /// Answers so many pings.
    private static func pings(_ count: Int, _ socket: TestSocket) async -> Int {
        var seen = 0
        while seen < count, let event = await socket.next() {
            if event == .ping { seen += 1 }
        }
        return seen
    }

    @Test("one that takes nothing is told that it is too slow, once it reads again")
    func stalled() async throws {
        try await withServer {
            $0.webSocket.stallTimeout = .milliseconds(200)
            $0.webSocket.closeDeadline = .seconds(3_600)
        } handler: { request in
            guard let handshake = try? WebSocketHandshake(request) else {
                return await echo(request)
            }
            return .webSocket(handshake, maxMessageByteCount: 10) { socket in
                let piece = [UInt8](repeating: 65, count: 100_000)
                while true {
                    do { try await socket.send(piece) } catch { return }
                }
            }
        } _: { server, port in
            let socket = TestSocket(RawClient(port: port))
            _ = await socket.open("/")
            try await waitUntil("the socket counts as stalled") {
                await server.counters().webSocketsStalled > 0
            }
            #expect(await socket.closeCode() == WebSocketCode(rawValue: 4008))
            #expect(await socket.isEnded())
        }
    }

    @Test("one whose messages are not taken is not read, and its closing is heard")
    func heldUp() async throws {
        let gate = Gate()
        try await withServer {
            $0.maxBodyBytesInFlight = 300_000
        } handler: { request in
            guard let handshake = try? WebSocketHandshake(request) else {
                return await echo(request)
            }
            return .webSocket(handshake, maxMessageByteCount: 100_000) { socket in
                await gate.wait()
                while case .text(let text) = await socket.receive() {
                    do { try await socket.send(text) } catch { return }
                }
            }
        } _: { server, port in
            let client = RawClient(port: port)
            let socket = TestSocket(client)
            _ = await socket.open("/")
            let text = String(repeating: "x", count: 90_000)
            let frames = RawFrame.text(text).bytes
            // The client's queue sends and receives in turn: the sending must have its turn first.
            async let sent = client.send((0..<8).flatMap { _ in frames })
            try await waitUntil("messages have come in") {
                await server.counters().bodyBytesInFlight > 0
            }
            #expect(await server.counters().bodyBytesInFlight < 200_000)
            gate.open()
            for _ in 0..<8 { #expect(await socket.text() == text) }
            #expect(await sent)
            await socket.close(.normal)
            #expect(await socket.closeCode() == .normal)
            #expect(await server.counters().bodyBytesInFlight == 0)
        }
    }

    @Test("a message that is never finished, and a closing nobody answers, end all the same")
    func unfinished() async throws {
        try await withParrot {
            $0.webSocket.messageDeadline = .milliseconds(100)
            $0.webSocket.closeDeadline = .milliseconds(100)
        } _: { server, port in
            let client = RawClient(port: port)
            await client.send(TestSocket.request("/"))
            await client.send(RawFrame.text("never", isFinal: false).bytes)
            let seen = await client.readBytes()
            #expect(seen.contains([0x03, 0xf0]), "1008")
            #expect(await server.counters().openWebSockets == 0)
        }
    }

    @Test("stop closes with 1001")
    func stop() async throws {
        try await withParrot { server, port in
            let socket = TestSocket(RawClient(port: port))
            _ = await socket.open("/")
            async let stopped: Void = server.stop(grace: .seconds(20))
            #expect(await socket.closeCode() == .goingAway)
            #expect(await socket.isEnded())
            await stopped
        }
    }

    @Test("random damage never stops the server, nor leaves anything behind")
    func damageOfFrames() async throws {
        try await withParrot { server, port in
            var random = SystemRandomNumberGenerator()
            let sound = [
                RawFrame.text("one", isFinal: false), .ping("p"), .rest("two"), .text("three"),
                .close(1000, "bye"),
            ].flatMap(\.bytes)
            for _ in 0..<300 {
                var bytes = sound
                for _ in 0..<3 {
                    bytes[Int.random(in: bytes.indices, using: &random)] ^=
                        1 << UInt8.random(in: 0..<8, using: &random)
                }
                let client = RawClient(port: port)
                await client.send(Array(TestSocket.request("/").utf8) + bytes)
                _ = await client.read(atLeast: 1)
                await client.abort()
            }
            try await waitUntil("all connections are gone") {
                await server.counters().openConnections == 0
            }
            #expect(await server.counters().openWebSockets == 0)
            #expect(await server.counters().bodyBytesInFlight == 0)
            let socket = TestSocket(RawClient(port: port))
            _ = await socket.open("/")
            await socket.say("fine")
            #expect(await socket.text() == "fine")
        }
    }
}
