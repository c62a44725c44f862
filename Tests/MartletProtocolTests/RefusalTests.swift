import MartletModel
import MartletProtocol
import Testing

/// Bodies that are refused whole: what is not JSON, and requests of the wrong shape.
@Suite("Refused requests")
struct RefusalTests {
    @Test("what is not JSON", arguments: Refusal.notJSON)
    func notJSON(refusal: Refusal) {
        expectRefused(refusal)
    }

    @Test("what has the wrong shape", arguments: Refusal.wrongShape)
    func wrongShape(refusal: Refusal) {
        expectRefused(refusal)
    }

    private func expectRefused(_ refusal: Refusal) {
        let fault = #expect(throws: WireFault.self) {
            try SyncCoder.decodeRequest(refusal.bytes)
        }
        #expect(fault?.message.contains(refusal.words) == true, "\(String(describing: fault))")
        #expect((fault?.offset ?? -1) <= refusal.bytes.count)
    }

    @Test("the same in an answer: a wrong `more`, a missing maxRevision")
    func answersMalformed() {
        for text in [
            #"{"maxRevision":0,"changeSets":[],"more":1}"#, #"{"changeSets":[]}"#,
            #"{"maxRevision":0,"changeSets":[]"#, #"{"maxRevision":0,"changeSets":[[1,]]}"#,
        ] {
            #expect(throws: WireFault.self) { try SyncCoder.decodeAnswer([UInt8](text.utf8)) }
        }
    }

    @Test("a client id of 128 bytes is taken, one of 129 is not")
    func nameLength() throws {
        let fits = String(repeating: "é", count: 64)
        let body = { #"{"clientId":""# + $0 + #"","maxRevision":0,"changeSets":[]}"# }
        #expect(try SyncCoder.decodeRequest([UInt8](body(fits).utf8)).clientID == fits)
        #expect(throws: WireFault.self) {
            try SyncCoder.decodeRequest([UInt8](body(fits + "x").utf8))
        }
    }

    @Test("64 levels are taken, 65 are not, in any member")
    func depth() throws {
        let body = { (levels: Int) in
            let nested =
                String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
            return [UInt8]((#"{"x":"# + nested + #","maxRevision":0,"changeSets":[]}"#).utf8)
        }
        #expect(try SyncCoder.decodeRequest(body(63)).maxRevision == 0)
        let fault = #expect(throws: WireFault.self) { try SyncCoder.decodeRequest(body(64)) }
        #expect(fault?.message.contains("Nested deeper") == true)
        // A million levels cost no stack.
        #expect(throws: WireFault.self) { try SyncCoder.decodeRequest(body(1_000_000)) }
    }

    @Test("unknown members beside the change sets are passed over, checked all the same")
    func unknownMembers() throws {
        let body = { (value: String) in
            [UInt8]((#"{"later":"# + value + #","maxRevision":5,"changeSets":[]}"#).utf8)
        }
        for value in [
            "1", "1e999", "99999999999999999999", "null", #""\ud83d\ude00""#,
            #"{"a":[1,{"b":[]}]}"#,
        ] {
            #expect(try SyncCoder.decodeRequest(body(value)) == SyncRequest(maxRevision: 5))
        }
        #expect(throws: WireFault.self) { try SyncCoder.decodeRequest(body(#"{"a":[1,{"b":]}]}"#)) }
    }

    @Test("a name that comes twice is found among any number", arguments: [2, 16, 17, 18, 40])
    func duplicates(count: Int) throws {
        let names = (1...count).map { "\"n\($0)\":0" }
        let body = { (names: [String]) in [UInt8](("{" + names.joined(separator: ",") + "}").utf8) }
        #expect(try SyncCoder.decodeAttributes(body(names)).count == count)
        for name in [names[0], names[count - 1]] {
            #expect(throws: WireFault.self) {
                try SyncCoder.decodeAttributes(body(names + [name]))
            }
        }
    }

    @Test("stored attributes: arrays, objects and doubled names are refused")
    func attributes() {
        for text in [
            #"{"a":[]}"#, #"{"a":{}}"#, #"{"a":1,"a":2}"#, #"{"a":1e999}"#, "[]", "", "{}x",
            #"{"a":9223372036854775808}"#, "{\"e\u{301}\":1,\"\u{E9}\":1}",
        ] {
            #expect(throws: WireFault.self) { try SyncCoder.decodeAttributes([UInt8](text.utf8)) }
        }
    }

    @Test("a stored change set of the wrong shape is refused, not taken as empty")
    func storedSet() {
        let bytes = [UInt8](#"{"types":["a"]}"#.utf8)
        #expect(throws: WireFault.self) { try SyncCoder.decodeChangeSet(bytes) }
    }

    @Test("NaN, infinities and attributes with words of the wire cannot be written")
    func writing() {
        for number in [Double.nan, .infinity, -.infinity] {
            let attributes = Attributes(names: ["n"], values: [.real(number)])
            #expect(throws: WireFault.self) { try SyncCoder.encode(attributes) }
        }
        for name in ["revision", "__oldId__", "__proto__"] {
            let entry = RecordEntry(
                id: .integer(1), attributes: Attributes(names: [name], values: [.null]))
            let set = ChangeSet(types: [
                TypeChanges(name: "t", update: [.integer(1)], entries: [entry])
            ])
            #expect(throws: WireFault.self) { try SyncCoder.encode(set) }
        }
    }

    @Test("a problem that cannot be read is made from the status")
    func problems() {
        for text in [
            "", "<html>", "[]", #"{"kind":1,"detail":null,"retryAfter":-1}"#, "{\"kind\":\"x\"",
        ] {
            let problem = SyncCoder.decodeProblem([UInt8](text.utf8), status: 502)
            #expect(problem.status == 502)
            #expect(problem.kind == Problem.unknownKind)
            #expect(problem.retryAfter == nil)
            #expect(problem.detail.contains("502"))
        }
    }
}
