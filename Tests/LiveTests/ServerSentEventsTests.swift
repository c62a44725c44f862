import Testing

@testable import Martlet

@Suite("Server-sent events")
struct ServerSentEventsTests {
    private static func read(_ text: String, limit: Int = 1 << 20) throws -> [String] {
        var reader = ServerSentEvents(limit: limit)
        return try reader.read(text.utf8).map(show)
    }

    private static func show(_ event: ServerSentEvents.Event) -> String {
        "\(event.name)|\(String(decoding: event.data, as: UTF8.self))|\(event.identifier)"
    }

    @Test(
        "are read as the standard says",
        arguments: [
            ("data: YHOO\ndata: +2\ndata: 10\n\n", ["message|YHOO\n+2\n10|"]),
            // The standard's own examples.
            (
                ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n",
                ["message|first event|1", "message|second event|", "message| third event|"]
            ),
            ("data\n\ndata\ndata\n\ndata:", ["message||", "message|\n|"]),
            ("data:test\n\ndata: test\n\n", ["message|test|", "message|test|"]),
            ("event: add\ndata: 73857293\n\ndata: b\n\n", ["add|73857293|", "message|b|"]),
            // Line ends of all kinds, also mixed.
            ("data: a\r\ndata: b\r\r\ndata: c\n\r", ["message|a\nb|", "message|c|"]),
            ("data: a\r\r", ["message|a|"]),
            ("data: a\n\r\n", ["message|a|"]),
            // A byte order mark counts only at the start, and once.
            ("\u{FEFF}data: a\n\n\u{FEFF}data: b\n\n", ["message|a|"]),
            ("\u{FEFF}\u{FEFF}data: a\n\n", []),
            ("\u{FEFF}\n\ndata: a\n\n", ["message|a|"]),
            // Identifiers stay; one without an event counts; one with a NUL does not.
            ("id: 7\n\ndata: a\n\n", ["message|a|7"]),
            ("id: 7\ndata: a\n\nid: 8\u{0}\ndata: b\n\n", ["message|a|7", "message|b|7"]),
            // Unknown fields, other cases and spaces before the colon are passed over.
            ("Data: a\ndata : b\nfoo: c\nfoo\ndata: d\n\n", ["message|d|"]),
            ("data: a: b\n\n", ["message|a: b|"]),
            ("data\u{0}: a\n\n", []),
            // What is not finished is no event, nor is one without data.
            ("data: a", []), ("data: a\n", []), ("event: x\n\n", []), (":\n\n:\n\n", []),
        ])
    func standard(text: String, events: [String]) throws {
        #expect(try Self.read(text) == events)
    }

    @Test("give signs of life, of which the oldest that came counts")
    func signs() throws {
        var reader = ServerSentEvents(limit: 100)
        #expect(reader.takeSign() == nil)
        _ = try reader.read(":\n\n: hello\n:-1\n:99999999999999999999\n".utf8)
        #expect(reader.takeSign() == nil)
        _ = try reader.read("data: a\n: 15003\n\n:30004\n\n".utf8)
        #expect(reader.takeSign() == 15_003)
        #expect(reader.takeSign() == nil)
        _ = try reader.read(":4500".utf8)
        #expect(reader.takeSign() == nil && !reader.isInEvent)
        _ = try reader.read("5\n\n".utf8)
        #expect(reader.takeSign() == 45_005)
    }

    @Test("name the wait before connecting again, where it is a number")
    func retry() throws {
        var reader = ServerSentEvents(limit: 100)
        #expect(reader.retry == nil)
        _ = try reader.read("retry: 2000\n\n".utf8)
        #expect(reader.retry == 2_000)
        for text in ["retry: x\n", "retry: -1\n", "retry\n", "retry: 99999999999999999999\n"] {
            _ = try reader.read(text.utf8)
            #expect(reader.retry == 2_000)
        }
    }

    @Test("beyond the limit are refused, on one line or many, and below it are not")
    func limitOfEvents() throws {
        #expect(try Self.read("data: 3456789\n\n", limit: 13).count == 1)
        for text in [
            "data: 34567890\n\n", "data: 1\ndata: 2\ndata: 3\ndata: 4\ndata: 5\n", ":2345678901234",
        ] {
            #expect(throws: ServerSentEvents.TooLarge(limit: 13)) {
                try Self.read(text, limit: 13)
            }
        }
        // Events and comments before do not count.
        #expect(try Self.read("data: 3456789\n\n:234567\ndata: 3456789\n\n", limit: 13).count == 2)
    }

    @Test("are the same in whatever pieces they come", arguments: 1...300 as ClosedRange<UInt64>)
    func piecesOfEvents(seed: UInt64) throws {
        var dice = Dice(seed: seed)
        let bytes = dice.stream()
        var whole = ServerSentEvents(limit: 1 << 20)
        let expected = try whole.read(bytes)
        #expect(expected.map(Self.show) == Self.reference(bytes).map(Self.show))
        var reader = ServerSentEvents(limit: 1 << 20)
        var events: [ServerSentEvents.Event] = []
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start + dice.roll(7))
            events += try reader.read(bytes[start..<end])
            start = end
        }
        #expect(events == expected)
        #expect(reader.retry == whole.retry)
        #expect(reader.lastIdentifier == whole.lastIdentifier)
    }

    /// The standard's rules once more, over whole text: lines first, then fields.
    private static func reference(_ bytes: [UInt8]) -> [ServerSentEvents.Event] {
        var text = bytes
        if text.starts(with: [0xEF, 0xBB, 0xBF]) { text.removeFirst(3) }
        var lines: [[UInt8]] = []
        var line: [UInt8] = []
        for (index, byte) in text.enumerated() {
            if byte == 10, index > 0, text[index - 1] == 13 { continue }
            if byte == 10 || byte == 13 {
                lines.append(line)
                line = []
            } else {
                line.append(byte)
            }
        }
        var events: [ServerSentEvents.Event] = []
        var data: [[UInt8]] = []
        var (name, last) = ("", "")
        for line in lines {
            if line.isEmpty {
                if !data.isEmpty {
                    events.append(
                        .init(
                            name: name.isEmpty ? "message" : name,
                            data: [UInt8](data.joined(separator: [10])), identifier: last))
                }
                (data, name) = ([], "")
                continue
            }
            let parts = line.split(
                separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
            var value = [UInt8](parts.count > 1 ? parts[1] : [])
            if value.first == 32 { value.removeFirst() }
            switch String(decoding: parts[0], as: UTF8.self) {
            case "data": data.append(value)
            case "event": name = String(decoding: value, as: UTF8.self)
            case "id" where !value.contains(0): last = String(decoding: value, as: UTF8.self)
            default: break
            }
        }
        return events
    }
}

/// Streams by chance, from a seed.
private struct Dice {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed &* 0x9E37_79B9_7F4A_7C15 | 1
    }

    /// A number from 0 to below `sides`.
    mutating func roll(_ sides: Int) -> Int {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return Int(state % UInt64(sides))
    }

    /// Words of the format in any order, and bytes of any kind between them.
    mutating func stream() -> [UInt8] {
        let words = [
            "data", "data: ", "event: ", "id: ", "id", "retry: ", ":", " ", "\n", "\r", "\r\n",
            "\n\n", "x", "12", "\u{FEFF}", "ü", "\u{0}", "{\"deltas\":[]}", "data: a\n\n",
        ]
        var bytes: [UInt8] = []
        for _ in 0..<(5 + roll(60)) {
            if roll(12) == 0 {
                bytes.append(UInt8(roll(256)))
            } else {
                bytes += words[roll(words.count)].utf8
            }
        }
        return bytes
    }
}
