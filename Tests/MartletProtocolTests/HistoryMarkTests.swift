import Testing

@testable import MartletProtocol

@Suite("The end of an answer that a device has applied in part")
struct HistoryMarkTests {
    @Test("travels as it is")
    func roundTrip() throws {
        var request = SyncRequest(maxRevision: 12)
        request.partOf = HistoryMark(revision: 14, lineage: "77ab")
        request.goal = 15
        #expect(try SyncCoder.decodeRequest(SyncCoder.encode(request)) == request)
    }

    @Test(
        "is refused if it makes no sense",
        arguments: [
            (#"{"revision":1}"#, "lacks one of"), (#"{"lineage":"77ab"}"#, "lacks one of"),
            (#"{"revision":-1,"lineage":"77ab"}"#, "0 or more"),
        ])
    func senseless(text: String, expected: String) throws {
        let body = #"{"maxRevision":1,"partOf":\#(text),"changeSets":[]}"#
        let fault = #expect(throws: WireFault.self) {
            try SyncCoder.decodeRequest(Array(body.utf8))
        }
        #expect(fault?.message.contains(expected) == true, "\(String(describing: fault))")
    }
}
