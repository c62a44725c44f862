import Foundation
import MartletModel
import MartletServer
import MartletServerCore
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

    @Test("takes policies if it does not begin with a brace, and refuses a file of none")
    func policies() throws {
        func read(_ text: String) throws -> DataSetRules {
            try RulesFile.read([UInt8](text.utf8), schema: schema)
        }
        let rules = try read("-- ours\nCREATE POLICY every ON teams USING (true);")
        #expect(rules.policies != nil && rules.roles == .everything)
        let lists = try read(" {\"default\": {\"delete\": []}}")
        #expect(lists.policies == nil && lists.roles != .everything)
        for empty in ["", "-- nothing yet", "GRANT ALL ON teams TO PUBLIC;"] {
            let failure = #expect(throws: ServerFailure.self) { try read(empty) }
            #expect(failure?.description.contains("nobody would see anything") == true)
        }
        let failure = #expect(throws: ServerFailure.self) {
            try read("CREATE POLICY every ON team USING (true);")
        }
        #expect(failure?.description.contains("line 1, column 24") == true)
    }

    @Test("a byte order mark is passed over, and bytes that are no UTF-8 are said to be none")
    func encodings() throws {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        let policy = [UInt8]("CREATE POLICY every ON teams USING (true)".utf8)
        #expect(try RulesFile.read(mark + policy, schema: schema).policies != nil)
        let lists = [UInt8](#"{"default": {"delete": []}}"#.utf8)
        #expect(try RulesFile.read(mark + lists, schema: schema).roles != .everything)
        for bytes in [policy + [0xFC], lists + [0xFC]] {
            let failure = #expect(throws: ServerFailure.self) {
                try RulesFile.read(bytes, schema: schema)
            }
            #expect(failure?.description.contains("SQL or JSON in UTF-8") == true)
        }
        let empty = #expect(throws: ServerFailure.self) { try RulesFile.read([], schema: schema) }
        #expect(
            empty?.description.contains("Without a rules file everybody sees everything") == true)
    }

    @Test("roles are equal if their bytes are")
    func exactRoles() throws {
        let (one, other) = ("rol\u{E9}", "role\u{301}")
        let rules = try parse(#"{"default": {"delete": ["\#(one)"], "create": ["\#(other)"]}}"#)
        #expect(may(rules, [one], "teams") == [.delete, .update])
        #expect(may(rules, [other], "teams") == [.create, .update])
        #expect(Principal(name: "t", user: one) != Principal(name: "t", user: other))
        #expect(Principal(name: "t", roles: [one]) != Principal(name: "t", roles: [other]))
    }

    @Test("docs/rules.md shows a file that is read, and what it means")
    func page() throws {
        let page = try String(
            contentsOf: URL(fileURLWithPath: #filePath)
                .appendingPathComponent("../../../docs/rules.md").standardized, encoding: .utf8)
        let example = try #require(page.firstMatch(of: /```json\n((?s).*?)```/)).1
        let rules = try RulesFile.parse(
            [UInt8](example.utf8),
            schema: Schema(
                types: ["teams", "players", "notes"].map {
                    EntityType(name: $0, key: "id", keyKind: .integer, attributes: [])
                }))
        // The table of the page: an operation, and who may do it, in three columns.
        let rows = page.matches(of: /\| (create|update|delete) \| (.+) \| (.+) \| (.+) \|/)
        #expect(rows.count == 3)
        for row in rows {
            let operation = try #require(Operations.words.first { $0.word == row.1 }).operation
            for (type, cell) in [("teams", row.2), ("players", row.3), ("notes", row.4)] {
                for role in ["admin", "coach", "fan"] {
                    let expected =
                        cell == "everyone" || cell.split(separator: ", ").contains { $0 == role }
                    #expect(
                        may(rules, [role], type).contains(operation) == expected,
                        "\(role) \(row.1) \(type)")
                }
            }
        }
    }

    @Test("without rules everyone may do everything")
    func emptyRules() throws {
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
    func refusalsOfRulesFile(text: String, part: String) throws {
        let failure = #expect(throws: ServerFailure.self) { try parse(text) }
        #expect(failure?.message.contains(part) == true, "\(failure?.message ?? "")")
    }
}
