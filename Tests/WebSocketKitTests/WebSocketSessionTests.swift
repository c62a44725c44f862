import RandomKit
import SocketTalk
import Testing
import WebSocketKit

@Suite("WebSocket session")
struct WebSocketSessionTests {
    private static let limit = 100_000

    private static func server() -> WebSocketSession {
        WebSocketSession(role: .server, maxMessageByteCount: limit)
    }

    private static func client() -> WebSocketSession {
        WebSocketSession(role: .client(mask: { [1, 2, 3, 4] }), maxMessageByteCount: limit)
    }

    private static func text(_ text: String) -> WebSocketSession.Event { .text(Array(text.utf8)) }

    @Test("two ends understand each other, at every length the head writes differently")
    func bothWays() {
        let (server, client) = (Self.server(), Self.client())
        for length in [0, 1, 125, 126, 65_535, 65_536, Self.limit] {
            let text = [UInt8](repeating: 0x61, count: length)
            #expect(client.send(text: text))
            #expect(server.receive(client.takeOutput()) == [.text(text)])
            #expect(server.send(binary: text))
            #expect(client.receive(server.takeOutput()) == [.binary(text)])
        }
    }

    @Test("what comes byte by byte, or in fragments with a ping between them, is one message")
    func piecesOfMessage() {
        let server = Self.server()
        let frames = [
            RawFrame.text("né", isFinal: false), .rest("e ", isFinal: false), .ping("alive?"),
            .rest("", isFinal: false), .rest("ré"),
        ]
        var events: [WebSocketSession.Event] = []
        for byte in frames.flatMap(\.bytes) { events += server.receive([byte]) }
        #expect(events == [.ping, Self.text("née ré")])
        #expect(server.takeOutput() == [0x8a, 6] + Array("alive?".utf8))
        #expect(!server.isInMessage)
    }

    @Test("what a cut frame's beginning said is not forgotten while the session speaks")
    func cutWhileSpeaking() {
        let bytes = (RawFrame.text("first").bytes + RawFrame.text("second").bytes)
        for cut in 1..<bytes.count {
            let server = Self.server()
            var events = server.receive(Array(bytes[..<cut]))
            server.send(text: [65])
            server.ping()
            events += server.receive(Array(bytes[cut...]))
            #expect(events == [Self.text("first"), Self.text("second")], "\(cut)")
            #expect(server.takeOutput() == [0x81, 1, 65, 0x89, 0])
        }
    }

    @Test("the reason of a closing frame is judged whole, however it comes")
    func cutReason() {
        let broken = Array("né".utf8.dropLast())
        for (reason, isSound) in [(Array("été né 迢".utf8), true), (broken, false)] {
            let bytes =
                RawFrame.text("a").bytes + RawFrame(opcode: 8, payload: [3, 233] + reason).bytes
            for cut in 1..<bytes.count {
                let server = Self.server()
                let events =
                    server.receive(Array(bytes[..<cut])) + server.receive(Array(bytes[cut...]))
                let close = WebSocketSession.Event.close(
                    code: WebSocketCode(rawValue: 1001), reason: reason)
                #expect(events == [Self.text("a")] + (isSound ? [close] : []), "\(cut)")
                #expect(server.sentCode == (isSound ? WebSocketCode(rawValue: 1001) : .invalidText))
            }
        }
    }

    @Test("a letter cut by the border of two fragments is whole again")
    func cutLetter() {
        let server = Self.server()
        let letter = Array("€".utf8)
        _ = server.receive(RawFrame(isFinal: false, opcode: 1, payload: [letter[0]]).bytes)
        #expect(server.isInMessage)
        #expect(server.partialByteCount == 1)
        let rest = RawFrame(opcode: 0, payload: Array(letter[1...])).bytes
        #expect(server.receive(rest) == [.text(letter)])
        #expect(server.partialByteCount == 0)
    }

    /// What breaks the protocol, and the code it is closed with.
    static let faults: [(name: String, frames: [RawFrame], code: WebSocketCode)] = [
        ("not masked", [RawFrame(opcode: 1, payload: [65], mask: nil)], .protocolError),
        ("a reserved bit", [RawFrame(reserved: 4, opcode: 1)], .protocolError),
        ("the other reserved bits", [RawFrame(reserved: 3, opcode: 1)], .protocolError),
        ("a reserved opcode", [RawFrame(opcode: 3)], .protocolError),
        ("a reserved control opcode", [RawFrame(opcode: 11)], .protocolError),
        ("a rest of nothing", [.rest("x")], .protocolError),
        ("a message in a message", [.text("a", isFinal: false), .text("b")], .protocolError),
        ("a ping in fragments", [RawFrame(isFinal: false, opcode: 9)], .protocolError),
        (
            "a ping of 126 bytes", [RawFrame(opcode: 9, payload: .init(repeating: 65, count: 126))],
            .protocolError
        ),
        ("a close of one byte", [RawFrame(opcode: 8, payload: [3])], .protocolError),
        ("a code that is never sent", [.close(1005)], .protocolError),
        ("a code of nobody", [.close(999)], .protocolError),
        ("a length of 2^63", [RawFrame(opcode: 1, claimed: 1 << 63)], .protocolError),
        ("no UTF-8", [RawFrame(opcode: 1, payload: [0xff])], .invalidText),
        ("half a letter", [RawFrame(opcode: 1, payload: [0xe2, 0x82])], .invalidText),
        ("a surrogate", [RawFrame(opcode: 1, payload: [0xed, 0xa0, 0x80])], .invalidText),
        (
            "no UTF-8 in a reason", [RawFrame(opcode: 8, payload: [3, 232, 0xff])], .invalidText
        ),
        ("too long", [RawFrame(opcode: 2, payload: [1], claimed: UInt64(limit) + 1)], .tooBig),
        (
            "too long in fragments",
            [
                .text("a", isFinal: false),
                RawFrame(opcode: 0, payload: [1], claimed: UInt64(limit)),
            ], .tooBig
        ),
        (
            "too many fragments",
            [.text("a", isFinal: false)]
                + .init(
                    repeating: .rest("", isFinal: false),
                    count: WebSocketSession.maxFramesPerMessage), .tooBig
        ),
    ]

    @Test("a fault ends the session with its code", arguments: faults.indices)
    func fault(index: Int) {
        let fault = Self.faults[index]
        for isWhole in [true, false] {
            let server = Self.server()
            let bytes = fault.frames.flatMap(\.bytes)
            var events: [WebSocketSession.Event] = []
            if isWhole {
                events = server.receive(bytes)
            } else {
                for byte in bytes { events += server.receive([byte]) }
            }
            #expect(
                !events.contains { if case .text = $0 { true } else { false } }, "\(fault.name)")
            #expect(server.sentCode == fault.code, "\(fault.name)")
            #expect(server.isDeaf, "\(fault.name)")
            #expect(Array(server.takeOutput().prefix(1)) == [0x88], "\(fault.name)")
            #expect(!server.send(text: [65]), "\(fault.name)")
            #expect(server.receive(RawFrame.text("late").bytes).isEmpty, "\(fault.name)")
        }
    }

    @Test("the closing handshake, begun by either end")
    func closing() {
        let (server, client) = (Self.server(), Self.client())
        server.close(.goingAway, "The server stops.")
        #expect(!server.isFinished)
        let heard = client.receive(server.takeOutput())
        #expect(heard == [.close(code: .goingAway, reason: Array("The server stops.".utf8))])
        #expect(client.isFinished)
        _ = server.receive(client.takeOutput())
        #expect(server.isFinished)

        let other = Self.server()
        #expect(
            other.receive(RawFrame.close(nil).bytes + RawFrame.text("late").bytes)
                == [.close(code: .none, reason: [])])
        #expect(other.isFinished)
        #expect(other.takeOutput().first == 0x88)
    }

    @Test("a reason is cut at a letter's border so that it fits")
    func longReason() {
        let (server, client) = (Self.server(), Self.client())
        server.close(.policy, String(repeating: "é", count: 100))
        let heard = client.receive(server.takeOutput())
        #expect(
            heard
                == [.close(code: .policy, reason: Array(String(repeating: "é", count: 61).utf8))])
    }

    @Test("a limit set later holds for what begins later")
    func changedLimit() {
        let server = WebSocketSession(role: .server, maxMessageByteCount: 10)
        server.allowMessages(upTo: 11)
        #expect(server.receive(RawFrame.text("hello world").bytes) == [Self.text("hello world")])
        _ = server.receive(RawFrame.text("hello world!").bytes)
        #expect(server.sentCode == .tooBig)
    }

    @Test("random damage ends in events or a code, never in a crash or a growing heap")
    func damageOfSession() {
        var random = SplitMix64(seed: 0x5eed)
        let sound = [
            RawFrame.text("one", isFinal: false), .ping("p"), .rest("two"),
            RawFrame(opcode: 2, payload: .init(repeating: 7, count: 300)), .text("three"),
            .close(1000, "bye"),
        ].flatMap(\.bytes)
        for _ in 0..<20_000 {
            let server = Self.server()
            var bytes = sound
            for _ in 0...random.below(3) {
                let index = random.below(bytes.count)
                switch random.below(3) {
                case 0: bytes[index] = UInt8(random.below(256))
                case 1: bytes.remove(at: index)
                default: bytes.insert(UInt8(random.below(256)), at: index)
                }
            }
            var rest = bytes[...]
            while !rest.isEmpty {
                let part = rest.prefix(1 + random.below(64))
                rest = rest.dropFirst(part.count)
                _ = server.receive(Array(part))
                #expect(server.partialByteCount <= bytes.count)
                #expect(server.takeOutput().count < 1_000)
            }
        }
    }
}
