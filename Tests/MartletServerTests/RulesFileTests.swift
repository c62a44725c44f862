import MartletCore
import MartletServer
import Testing

@Suite("Rules file")
struct RulesFileTests {
    private let schema = Schema(types: [
        EntityType(name: "teams", key: "id", keyKind: .integer, attributes: []),
        EntityType(name: "players", key: "id", keyKind: .integer, attributes: []),
    ])

    private func parse(_ text: String) throws -> Rules {
        try RulesFile.parse([UInt8](text.utf8), schema: schema)
    }

    private func may(_ rules: Rules, _ roles: [String], _ type: String) -> Operations {
        rules.operations(of: Principal(name: "t", roles: roles), on: type)
    }

    @Test("lets those do it who are listed, and everyone what nothing is said of")
    func lists() throws {
        let rules = try parse(
            """
            {"types": {"teams": {"create": ["admin"], "update": ["admin", "coach"], "delete": []}},
             "default": {"delete": ["admin"]}}
            """)
        #expect(may(rules, ["admin"], "teams") == [.create, .update])
        #expect(may(rules, ["coach"], "teams") == .update)
        #expect(may(rules, ["fan"], "teams") == [])
        #expect(may(rules, [], "teams") == [])
        #expect(may(rules, ["fan", "coach"], "teams") == .update)
        #expect(may(rules, ["coach", "admin"], "teams") == [.create, .update])
        #expect(may(rules, ["admin"], "players") == .all)
        #expect(may(rules, ["coach"], "players") == [.create, .update])
        #expect(may(rules, [], "players") == [.create, .update])
    }

    @Test("a type's own list takes the place of the default's; what it leaves out stays")
    func fallback() throws {
        let rules = try parse(
            #"{"default": {"create": ["a"], "delete": []}, "types": {"teams": {"create": ["b"]}}}"#)
        #expect(may(rules, ["a"], "teams") == .update)
        #expect(may(rules, ["b"], "teams") == [.create, .update])
        #expect(may(rules, ["a"], "players") == [.create, .update])
        #expect(may(rules, ["b"], "players") == .update)
    }

    @Test("without rules everyone may do everything")
    func empty() throws {
        #expect(may(try parse("{}"), [], "teams") == .all)
        #expect(may(try parse(#"{"types": {}}"#), ["x"], "players") == .all)
    }

    @Test(
        "is refused whole for anything it does not know",
        arguments: [
            ("", "not JSON"), ("[]", "wrong kind"), (#"{"type": {}}"#, "“type”"),
            (#"{"types": {"teams": {"read": []}}}"#, "“read”"),
            (#"{"types": {"teams": {"create": "admin"}}}"#, "types.teams.create"),
            (#"{"types": {"teams": ["admin"]}}"#, "types.teams"),
            (#"{"types": {"coaches": {}}}"#, "“coaches”"),
            (#"{"default": {"create": [1]}}"#, "default.create"),
        ])
    func refusals(text: String, part: String) throws {
        let failure = #expect(throws: ServerFailure.self) { try parse(text) }
        #expect(failure?.message.contains(part) == true, "\(failure?.message ?? "")")
    }
}
