import MartletModel
import Testing

@testable import MartletProtocol

/// A delta's record, a text within the text: read where it stands, it says what it says alone.
@Suite("Objects within texts")
struct NestedObjectTests {
    /// A batch of deltas with these payloads, as it travels.
    private func batch(_ payloads: [String]) -> [UInt8] {
        SyncCoder.encode(
            DeltaBatch(
                deltas: payloads.enumerated().map { index, payload in
                    Delta(
                        version: Int64(index + 1), seconds: 1, type: "teams", id: "\(index)",
                        operation: .upsert, payload: payload)
                }, nextVersion: Int64(payloads.count)))
    }

    private func check(_ payloads: [String]) throws {
        let deltas = try SyncCoder.decodeDeltaBatch(batch(payloads)).deltas
        #expect(deltas.map(\.payload) == payloads)
        for (delta, payload) in zip(deltas, payloads) {
            let alone = try? SyncCoder.decodeAttributes(Array(payload.utf8))
            let direct = try? delta.attributes()
            #expect(direct == alone, "\(payload)")
        }
    }

    @Test("every form of value, name and fault is read as it is alone")
    func forms() throws {
        let values = [
            "1", "-0", "-7", "9223372036854775807", "9223372036854775808", "01", "1.5", "-2.5e3",
            "1e400", "1.", "-", "true", "false", "null", "tru", "nul", "[]", "{}", "[1]", #""""#,
            #""a""#, #""é😀""#, #""a\nb""#, #""\\""#, #""\"""#, #""\u0041\u00e9\ud83d\ude00""#,
            #""\ud83d""#, #""a"#, "\"a\u{1}b\"", "\"a\tb\"", " 1", "1 ", "", "1,", #""/""#,
            #""\/""#,
        ]
        let names = ["a", "name", "é", "", #"q\"q"#, #"\u0061"#, "e\u{301}", "\u{e9}", "a b"]
        var payloads: [String] = []
        for value in values {
            payloads.append(#"{"a":\#(value)}"#)
            payloads.append(#"{"a":1,"b":\#(value),"c":2}"#)
            payloads.append(#"{"a":1,"b":\#(value)"#)
            payloads.append(#"{"a":1,"b":\#(value)}x"#)
            payloads.append(#"{ "a":1,"b":\#(value)}"#)
        }
        for first in names {
            for second in names {
                payloads.append(#"{"\#(first)":1,"\#(second)":"x"}"#)
            }
        }
        payloads += ["", "{", "}", "{}", "{} ", "{}}", "[]", "1", "{,}", #"{"a":1,}"#, #"{"a"}"#]
        payloads.append(
            "{" + (0..<200).map { #""n\#($0)":\#($0)"# }.joined(separator: ",") + "}")
        try check(payloads)
    }

    @Test("members in another order, fewer, more and others are each record's own")
    func members() throws {
        try check([
            #"{"a":1,"b":"x"}"#, #"{"a":2,"b":"y"}"#, #"{"b":"z","a":3}"#, #"{"a":4}"#, "{}",
            #"{"a":5,"b":"x","c":null}"#, #"{"a":6,"b":"x","c":true,"d":1.5}"#, #"{"a":7,"a":8}"#,
            #"{"a":9,"bb":1}"#, #"{"a":10,"b":1}"#, #"{"ab":1}"#, #"{"a":1,"b":2,"a":3}"#,
        ])
    }

    @Test("anything may stand there")
    func damageInPayload() throws {
        let seed = Dice.freshSeed
        var dice = Dice(seed: seed)
        let parts = [
            "{", "}", "\"", "\\", ",", ":", "a", "b", "name", "1", "-", ".", "e", "0", "true",
            "null",
            "é", "😀", " ", "\n", "\u{0}", "\\u0041", "\\\"", #""a":"#, #""b":"x""#, "[",
        ]
        for _ in 0..<300 {
            let payloads = (0..<20).map { _ in
                var characters = Array(#"{"a":12,"b":"some text","name":null,"c":true}"#)
                for _ in 0..<dice.below(4) {
                    let position = dice.below(characters.count + 1)
                    if dice.once(in: 3), position < characters.count {
                        characters.remove(at: position)
                    } else {
                        characters.insert(contentsOf: dice.pick(parts), at: position)
                    }
                }
                return String(characters)
            }
            try check(payloads)
        }
    }

    @Test("the form in which records are written is read in place")
    func recordForm() {
        let text = Array(#""{\"a\":1,\"b\":\"x y\",\"c\":null}" "#.utf8)
        var reader = JSONReader(text)
        var template = RecordTemplate()
        let attributes = reader.readObjectInText(like: &template)
        #expect(attributes == Attributes(names: ["a", "b", "c"], values: [1, "x y", .null]))
        #expect(reader.position == text.count - 1)
    }

    @Test("a payload given later takes the place of the one that was read")
    func replacedPayload() throws {
        var delta = try SyncCoder.decodeDeltaBatch(batch([#"{"a":1}"#])).deltas[0]
        delta.payload = #"{"a":2}"#
        #expect(try delta.attributes() == Attributes(names: ["a"], values: [2]))
        delta.payload = nil
        #expect(throws: WireFault.self) { try delta.attributes() }
    }
}
