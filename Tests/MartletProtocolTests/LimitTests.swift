import MartletModel
import MartletProtocol
import Testing

/// What a request may hold, tried with small limits of the same kind.
@Suite("Limits of requests")
struct LimitTests {
    private static let small = ReadingLimits(
        changeSets: 3, records: 4, changeSetBytes: 100, textBytes: 20)

    private func body(_ sets: [String]) -> [UInt8] {
        [UInt8]((#"{"maxRevision":0,"changeSets":["# + sets.joined(separator: ",") + "]}").utf8)
    }

    private func decode(_ sets: String...) throws -> [ChangeSet] {
        try SyncCoder.decodeRequest(body(sets), limits: Self.small).changeSets
    }

    @Test("are the ones in `Limits`")
    func constants() {
        let limits = ReadingLimits.request
        #expect(limits.changeSets == Limits.changeSetsPerRequest)
        #expect(limits.records == Limits.recordsPerChangeSet)
        #expect(limits.changeSetBytes == Limits.changeSetBytes)
        #expect(limits.textBytes == Limits.textBytes)
    }

    @Test("more change sets than allowed refuse the request")
    func changeSets() throws {
        #expect(try decode("{}", "{}", "{}").count == 3)
        #expect(throws: WireFault.self) { try decode("{}", "{}", "{}", "{}") }
        let real = Array(repeating: "{}", count: Limits.changeSetsPerRequest + 1)
        #expect(throws: WireFault.self) { try SyncCoder.decodeRequest(body(real)) }
        #expect(try SyncCoder.decodeAnswer(body(real)).changeSets.count == real.count)
    }

    @Test("more records than allowed, over all types, are a defect")
    func records() throws {
        let set = { (ids: String) in
            #"{"types":["t","u"],"t":{"delete":["# + ids + #"]},"u":{"delete":[1]}}"#
        }
        let sets = try decode(set("1,2,3"), set("1,2,3,4"), set("1,2,3"))
        #expect(sets.map(\.recordCount) == [4, 0, 4])
        #expect(sets[1].defect?.contains("More than 4 records") == true)
    }

    @Test("a change set of more bytes than allowed is a defect")
    func changeSetBytes() throws {
        let set = { (count: Int) in
            let frame = #"{"types":[],"message":""}"#
            let text = String(repeating: "x", count: count - frame.utf8.count)
            return #"{"types":[],"message":""# + text + #""}"#
        }
        let sets = try decode(set(100), set(101))
        #expect(sets[0].defect == nil)
        #expect(sets[1].defect?.contains("more than 100 bytes") == true)
    }

    @Test("a text of more bytes than allowed is a defect, escapes counted as what they stand for")
    func textBytes() throws {
        let set = { (text: String) in
            #"{"types":["t"],"t":{"update":[1],"attributes":{"1":{"a":""# + text + #""}}}}"#
        }
        let fits = String(repeating: "é", count: 10)
        let sets = try decode(
            set(fits), set(fits + "x"), set(String(repeating: #"\n"#, count: 14)))
        #expect(sets.map { $0.defect == nil } == [true, false, true])
        #expect(sets[1].defect?.contains("A text has more than 20 bytes") == true)
    }

    @Test("a document beyond the inflated limit is refused unread")
    func documentBytes() {
        let bytes = [UInt8](repeating: 0x20, count: Limits.inflatedBytes + 1)
        let fault = #expect(throws: WireFault.self) { try SyncCoder.decodeRequest(bytes) }
        #expect(fault?.offset == 0)
        #expect(throws: WireFault.self) { try SyncCoder.decodeAnswer(bytes) }
        #expect(SyncCoder.decodeProblem(bytes, status: 500).kind == Problem.unknownKind)
    }
}
