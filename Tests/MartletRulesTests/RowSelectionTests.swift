import MartletModel
import Testing

@testable import MartletRules

/// How conditions are split into what the person decides and what the row decides.
@Suite("Rows found by values")
struct RowSelectionTests {
    private static let schema = Schema(types: [
        EntityType(
            name: "teams", key: "id", keyKind: .integer,
            attributes: [Attribute(name: "owner", kind: .text)]),
        EntityType(
            name: "members", key: "id", keyKind: .integer,
            attributes: [
                Attribute(name: "person", kind: .text), Attribute(name: "team_id", kind: .integer),
            ]),
        EntityType(
            name: "players", key: "id", keyKind: .integer,
            attributes: [
                Attribute(name: "fee", kind: .integer), Attribute(name: "team_id", kind: .integer),
                Attribute(name: "name", kind: .text),
            ]),
    ])

    private static func finding(_ condition: String) throws -> RowFindingSummary {
        let program = try RulesProgram(
            """
            CREATE POLICY every ON members USING (true);
            CREATE POLICY every ON teams USING (true);
            CREATE POLICY tested ON players USING (\(condition));
            """, schema: schema)
        return program.rowFinding(of: 2)
    }

    @Test(
        "a column that must equal a value of the person finds the rows",
        arguments: [
            ("name = martlet_user()", "name"),
            ("martlet_claim('club') = name AND fee < 3", "name"),
            ("team_id IN (SELECT team_id FROM members WHERE person = martlet_user())", "team_id"),
            (
                "EXISTS (SELECT 1 FROM members AS m WHERE m.team_id = players.team_id AND m.person = martlet_user())",
                "team_id"
            ),
            (
                "EXISTS (SELECT 1 FROM teams AS t JOIN members AS m ON m.team_id = t.id WHERE t.id = players.team_id)",
                "team_id"
            ),
            ("team_id = (SELECT team_id FROM members WHERE id = 3)", "team_id"),
            ("name IN ('a', martlet_user()) OR id = 7 OR martlet_role('office')", "id name"),
            ("fee > 3 AND (name = 'x' OR team_id = 4)", "team_id name"),
        ])
    func found(condition: String, columns: String) throws {
        let finding = try Self.finding(condition)
        #expect(finding.columns.joined(separator: " ") == columns)
        #expect(finding.judgingEach.isEmpty && finding.readByRow.isEmpty)
    }

    @Test(
        "other conditions judge each row",
        arguments: [
            "fee < 3", "fee = 3 OR name LIKE 'a%'", "team_id NOT IN (SELECT id FROM teams)",
            "coalesce(team_id, 0) IN (SELECT id FROM teams)", "team_id = fee",
            "name <> martlet_user()",
            "NOT (name = martlet_user())",
        ])
    func judgingEach(condition: String) throws {
        #expect(try Self.finding(condition).judgingEach == ["tested"])
    }

    /// The memberships of a person, as rows of `members`.
    private struct Memberships: RuleRows {
        let teams: [Int64]

        func visit(
            _ type: Int, where match: (column: Int, value: Value)?,
            _ body: (RuleRow) throws -> Bool
        ) throws {
            guard type == 1 else { return }
            for (index, team) in teams.enumerated() {
                let row: RuleRow = [.integer(Int64(index)), .text("ann"), .integer(team)]
                guard match.map({ row[$0.column] == $0.value }) != false else { continue }
                guard try body(row) else { return }
            }
        }
    }

    @Test(
        "a change of a list tells which rows to judge, unless it was or is empty",
        arguments: [
            ([3, 4], [4, 5], .rows([2: [.integer(3), .integer(5)]])),
            ([3], [3], .rows([:])), ([3], [], .any), ([], [3], .any),
        ] as [([Int64], [Int64], RowSelection.Difference)])
    func lists(old: [Int64], new: [Int64], difference: RowSelection.Difference) throws {
        let program = try RulesProgram(
            """
            CREATE POLICY every ON members USING (true);
            CREATE POLICY tested ON players USING (team_id NOT IN (SELECT team_id FROM members));
            """, schema: Self.schema)
        func selection(_ teams: [Int64]) throws -> RowSelection {
            let evaluator = RuleEvaluator(
                program, for: Viewer(user: "ann"), over: Memberships(teams: teams))
            return try #require(try evaluator.selection(of: 2))
        }
        #expect(try selection(new).difference(from: selection(old)) == difference)
    }

    @Test(
        "a query that reads the row otherwise is read by row",
        arguments: [
            (
                "name = martlet_user() AND EXISTS (SELECT 1 FROM members WHERE members.id > players.id)",
                "members"
            ),
            ("team_id IN (SELECT id FROM teams WHERE owner = players.name)", "teams"),
            (
                "(SELECT owner FROM teams WHERE teams.id = players.team_id) = martlet_user()",
                "teams"
            ),
            (
                "EXISTS (SELECT 1 FROM teams WHERE teams.id = players.team_id AND owner = players.name)",
                "teams"
            ),
        ])
    func byRow(condition: String, type: String) throws {
        #expect(try Self.finding(condition).readByRow == [type])
    }
}
