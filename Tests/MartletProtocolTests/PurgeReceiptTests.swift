import MartletModel
import Testing

@testable import MartletProtocol

@Suite("Hidden records, and the receipt of what was removed")
struct PurgeReceiptTests {
    @Test("travel as they are")
    func roundTrip() throws {
        var request = SyncRequest(maxRevision: 12)
        request.partOf = HistoryMark(revision: 14, lineage: "77ab")
        request.purged = PurgeReceipt(
            view: 3, revision: 12, removed: RangeHash(count: 7, sum: 0xFEDC_BA98_7654_3210))
        #expect(try SyncCoder.decodeRequest(SyncCoder.encode(request)) == request)
        var players = TypeChanges(name: "players", delete: [.integer(4), .integer(9), .integer(5)])
        players.hidden = [.integer(9)]
        var words = TypeChanges(name: "words", delete: [.text("a"), .text("é")])
        words.hidden = [.text("é"), .text("a")]
        var set = ChangeSet(types: [players, words])
        (set.isDifference, set.revision) = (true, 12)
        var answer = SyncAnswer(maxRevision: 12, changeSets: [set])
        answer.view = 3
        #expect(try SyncCoder.decodeAnswer(SyncCoder.encode(answer)) == answer)
    }

    @Test(
        "are refused if they make no sense",
        arguments: [
            (#"{"revision":1,"removed":[0,"0000000000000000"]}"#, "lacks one of"),
            (#"{"view":1,"removed":[0,"0000000000000000"]}"#, "lacks one of"),
            (#"{"view":1,"revision":1}"#, "lacks one of"),
            (#"{"view":-1,"revision":1,"removed":[0,"0000000000000000"]}"#, "0 or more"),
            (#"{"view":1,"revision":1,"removed":[-1,"0000000000000000"]}"#, "0 or more"),
            (#"{"view":1,"revision":1,"removed":[0,"00"]}"#, "16 hexadecimal digits"),
            (#"0,"partOf":{"revision":1}"#, "lacks one of"),
            (#"0,"partOf":{"lineage":"77ab"}"#, "lacks one of"),
            (#"0,"partOf":{"revision":-1,"lineage":"77ab"}"#, "0 or more"),
        ])
    func senseless(text: String, expected: String) throws {
        let name = text.hasPrefix("{") ? "purged" : "other"
        let body = #"{"maxRevision":1,"\#(name)":\#(text),"changeSets":[]}"#
        let fault = #expect(throws: WireFault.self) {
            try SyncCoder.decodeRequest(Array(body.utf8))
        }
        #expect(fault?.message.contains(expected) == true, "\(String(describing: fault))")
    }

    @Test("cannot name a record as hidden that is not gone")
    func hiddenAndThere() throws {
        let set = """
            {"revision":2,"difference":true,"types":["teams"],"teams":{"create":[],"update":[],\
            "delete":[1],"hidden":[2],"attributes":{}}}
            """
        let body = #"{"maxRevision":2,"changeSets":[\#(set)]}"#
        let read = try SyncCoder.decodeAnswer(Array(body.utf8)).changeSets
        #expect(read.count == 1 && read[0].defect?.contains("not in `delete`") == true)
    }
}
