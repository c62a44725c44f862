import MartletModel
import MartletProtocol
import Testing

/// Change sets of the wrong shape: each is known by its defect and blocks no other.
@Suite("Defective change sets")
struct DefectTests {
    @Test("in its own members", arguments: Defect.members)
    func members(defect: Defect) throws {
        try expectDefect(defect)
    }

    @Test("in its records", arguments: Defect.records)
    func records(defect: Defect) throws {
        try expectDefect(defect)
    }

    /// Puts the set between two sound ones.
    private func expectDefect(_ defect: Defect) throws {
        let sound = #"{"identifier":"s","types":["t"],"t":{"delete":[5]}}"#
        let bad = "{" + defect.members + "}"
        let bytes = [UInt8](
            (#"{"maxRevision":0,"changeSets":["# + [sound, bad, sound].joined(separator: ",")
                + "]}").utf8)
        for sets in [
            try SyncCoder.decodeRequest(bytes).changeSets,
            try SyncCoder.decodeAnswer(bytes).changeSets,
        ] {
            #expect(sets.map { $0.defect == nil } == [true, false, true])
            #expect(sets[1].defect?.contains(defect.words) == true, "\(sets[1].defect ?? "")")
            #expect(sets[1].types.isEmpty)
            #expect(sets[2].types.first?.delete == [.integer(5)])
            let source = sets[1].source
            #expect(bytes[source.start..<source.end] == [UInt8](bad.utf8)[...])
        }
    }

    @Test("identifier and sequence are kept, also behind the defect")
    func namesBehindDefect() throws {
        let sets = try decode(
            #"{"types":["t"],"identifier":"a","t":7,"sequence":12}"#,
            #"{"identifier":"b","sequence":"no","types":[]}"#,
            #"{"identifier":9,"sequence":13,"types":[]}"#,
            #"{"identifier":"","sequence":99999999999999999999,"types":[]}"#, "7", "[[]]")
        #expect(sets.map(\.identifier) == ["a", "b", nil, nil, nil, nil])
        #expect(sets.map(\.sequence) == [12, nil, 13, nil, nil, nil])
        #expect(sets.allSatisfy { $0.defect != nil })
    }

    @Test("no value shows up in the sentence")
    func discretion() throws {
        let sets = try decode(
            #"{"types":["t"],"t":{"update":[1],"attributes":{"1":{"n":"secret","m":["secret"]}}}}"#,
            #"{"types":["t"],"t":{"delete":["secret","secret"]}}"#,
            #"{"types":["secret"]}"#)
        for set in sets { #expect(set.defect?.contains("secret") == false) }
    }

    @Test("what is not JSON inside a set refuses the request, even behind a defect")
    func notJSON() {
        for set in [
            #"{"types":["t"],"t":{"delete":[0],"attributes":{"1":{"a":01}}}}"#,
            #"{"types":["t"],"t":{"update":[1],"attributes":{"1":{"a":1,"a":2}}}}"#,
            #"{"types":["t"],"t":{"update":[1],"attributes":{"1":{},"1":{}}}}"#,
            #"{"types":["t"],"t":{"update":[1],"attributes":{"1":{},"\u0031":{}}}}"#,
            #"{"types":["t"],"t":{"update":[1],"update":[2]}}"#,
            #"{"types":["t"],"t":{},"t":{}}"#,
            #"{"types":7,"types":8}"#,
            "{\"types\":7,\"x\":\"\u{1}\"}",
        ] {
            #expect(throws: WireFault.self) { try decode(set) }
        }
    }

    @Test("a record twice, or a member of it, refuses the request as JSON that is none")
    func doubled() {
        for (update, attributes) in [
            ("1", #""1":{},"1":{}"#),
            ("1", #""1":{},"\u0031":{}"#),
            ("1,2", #""1":{},"1":{}"#),
            ("2,1", #""1":{},"1":{}"#),
            ("1", #""1":{"a":1,"a":1}"#),
            ("1,2", #""1":{"a":1,"b":1},"2":{"a":1,"a":1}"#),
            ("1,2", #""1":{"a":1},"2":{"a":1,"\u0061":1}"#),
            ("1,2", #""1":{"revision":1},"2":{"revision":1,"revision":1}"#),
        ] {
            let type = #"{"create":[],"update":["# + update + #"],"delete":[],"attributes":{"#
            let set = #"{"types":["t"],"t":"# + type + attributes + "}}}"
            let fault = #expect(throws: WireFault.self) { try decode(set) }
            #expect(fault?.message.contains("twice") == true)
        }
    }

    @Test("any number of them leaves the sound ones readable")
    func manyDefects() throws {
        let bad = #"{"types":["t"],"t":{"update":[1],"attributes":{"1":{"a":[]}}}}"#
        let body =
            #"{"maxRevision":0,"changeSets":["# + String(repeating: bad + ",", count: 100)
            + #"{"types":["t"],"t":{"delete":[5]}}]}"#
        let sets = try SyncCoder.decodeRequest([UInt8](body.utf8)).changeSets
        #expect(sets.count { $0.defect != nil } == 100)
        #expect(sets.last?.types.first?.delete == [.integer(5)])
    }

    private func decode(_ sets: String...) throws -> [ChangeSet] {
        let body = #"{"maxRevision":0,"changeSets":["# + sets.joined(separator: ",") + "]}"
        return try SyncCoder.decodeRequest([UInt8](body.utf8)).changeSets
    }
}
