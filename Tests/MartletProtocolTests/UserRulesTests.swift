import Testing

@testable import MartletProtocol

@Suite("The rules that concern a user")
struct UserRulesTests {
    private static let rules = UserRules(
        fingerprint: "4f1c", text: "CREATE POLICY \"é\" ON t USING (a = 'x''y') ;", user: "ann",
        roles: ["coach", "a \"b\""], claims: ["club": "7", "": "\n"])

    @Test("travel as they are, and are kept as they are")
    func roundTrip() throws {
        var request = SyncRequest(maxRevision: 3)
        request.rules = "4f1c"
        #expect(try SyncCoder.decodeRequest(SyncCoder.encode(request)) == request)
        for rules in [Self.rules, .none] {
            var answer = SyncAnswer(maxRevision: 3)
            answer.rules = rules
            #expect(try SyncCoder.decodeAnswer(SyncCoder.encode(answer)) == answer)
            #expect(try SyncCoder.decodeRules(SyncCoder.encode(rules)) == rules)
        }
    }

    @Test(
        "are refused if something is missing or of another kind",
        arguments: [
            (#"{"text":""}"#, "lacks"), (#"{"fingerprint":"a"}"#, "lacks"),
            (#"{"fingerprint":"","text":""}"#, "empty"),
            (#"{"fingerprint":"a","text":1}"#, "text"),
            (#"{"fingerprint":"a","text":"","roles":"x"}"#, ""),
            (#"{"fingerprint":"a","text":"","claims":{"x":1}}"#, "text"),
        ])
    func senseless(text: String, expected: String) throws {
        let body = #"{"maxRevision":1,"rules":\#(text),"changeSets":[]}"#
        let fault = #expect(throws: WireFault.self) {
            try SyncCoder.decodeAnswer(Array(body.utf8))
        }
        #expect(
            expected.isEmpty || fault?.message.contains(expected) == true,
            "\(String(describing: fault))")
    }
}
