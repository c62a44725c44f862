import MartletModel
import MartletRules
import Testing

/// Rows in memory. It counts the look-ups without a column.
private final class Rows: RuleRows {
    var rows: [[RuleRow]]
    private(set) var scans = 0

    init(_ rows: [[RuleRow]]) { self.rows = rows }

    func visit(
        _ type: Int, where match: (column: Int, value: Value)?, _ body: (RuleRow) throws -> Bool
    ) throws {
        if match == nil { scans += 1 }
        for row in rows[type] {
            if let match, row[match.column] != match.value { continue }
            guard try body(row) else { return }
        }
    }
}

@Suite("Why a row is shown")
struct FindingsTests {
    private static let schema = Schema(types: [
        EntityType(
            name: "teams", key: "id", keyKind: .integer,
            attributes: [
                Attribute(name: "name", kind: .text), Attribute(name: "rank", kind: .integer),
            ]),
        EntityType(
            name: "members", key: "id", keyKind: .integer,
            attributes: [
                Attribute(name: "team_id", kind: .integer), Attribute(name: "person", kind: .text),
            ]),
        EntityType(
            name: "players", key: "code", keyKind: .text,
            attributes: [
                Attribute(name: "team_id", kind: .integer), Attribute(name: "name", kind: .text),
            ]),
    ])

    private static let rows: [[RuleRow]] = [
        [
            [.integer(1), .text("Owls"), .integer(3)], [.integer(2), .text("Jays"), .integer(1)],
            [.integer(3), .text("Kites"), .null],
        ],
        [
            [.integer(10), .integer(1), .text("ann")], [.integer(11), .integer(2), .text("ann")],
            [.integer(12), .integer(2), .text("ben")],
        ],
        [
            [.text("p"), .integer(1), .text("Pia")], [.text("q"), .integer(3), .text("Quin")],
        ],
    ]

    private static func judgement(
        _ rules: String, _ type: Int, _ row: Int, _ viewer: Viewer = Viewer(user: "ann")
    ) throws -> RowJudgement {
        let rows = Rows(Self.rows)
        return try RuleEvaluator(try RulesProgram(rules, schema: schema), for: viewer, over: rows)
            .judgement(of: rows.rows[type][row], type: type)
    }

    /// The policy of teams with this condition, judged for a row.
    private static func finding(_ condition: String, _ row: Int = 0) throws -> PolicyFinding {
        let rules = """
            CREATE POLICY p ON teams USING (\(condition));
            ALTER TABLE members DISABLE ROW LEVEL SECURITY;
            ALTER TABLE players DISABLE ROW LEVEL SECURITY;
            """
        return try #require(try judgement(rules, 0, row).policies.first)
    }

    @Test(
        "names the parts of a condition up to the one that decides, and the rows of its queries",
        arguments: [
            ("name = 'Owls'", "lets it through: name = 'Owls'"),
            ("name = 'x' OR id = 1 OR id = 2", "lets it through: id = 1"),
            (
                "name = 'x'\n OR id = 2",
                "does not let it through: name = 'x' does not hold; id = 2 does not hold"
            ),
            (
                "id = 1 AND rank BETWEEN 1 AND 2 AND name = 'x'",
                "does not let it through: id = 1; rank BETWEEN 1 AND 2 does not hold"
            ),
            ("(id = 1 AND rank = 3)", "lets it through: (id = 1 AND rank = 3)"),
            (
                "EXISTS (SELECT 1 FROM members WHERE team_id = teams.id)",
                "through members 10"
            ),
            (
                "id IN (SELECT team_id FROM members WHERE person = martlet_user())",
                "through members 10"
            ),
            (
                "(SELECT person FROM members WHERE team_id = teams.id) = 'ann'",
                "through members 10"
            ),
            (
                "id = (SELECT team_id FROM members ORDER BY id LIMIT 1)",
                "LIMIT 1), through members 10"
            ),
            (
                "EXISTS (SELECT 1 FROM members AS m JOIN players AS p ON p.team_id = m.team_id"
                    + " WHERE m.team_id = teams.id)",
                "through members 10, players p"
            ),
            (
                "NOT EXISTS (SELECT 1 FROM members WHERE person = 'cat')",
                "lets it through: NOT EXISTS (SELECT 1 FROM members WHERE person = 'cat')"
            ),
            (
                "(EXISTS (SELECT 1 FROM members) AND id = 9 OR id = 1) AND id < 5",
                "OR id = 1); id < 5"
            ),
            (
                "NOT (EXISTS (SELECT 1 FROM members) AND id = 9)",
                "lets it through: NOT (EXISTS (SELECT 1 FROM members) AND id = 9)"
            ),
            ("id / 0 = 1 OR id = 1", "id / 0 = 1 cannot be computed, because"),
        ])
    func parts(condition: String, words: String) throws {
        let text = try Self.finding(condition).description
        #expect(text.hasPrefix("policy “p” (line 1) "))
        #expect(
            text.hasSuffix(words) || words.hasSuffix("because") && text.contains(words), "\(text)")
    }

    @Test("a condition that is NULL is told from one that fails")
    func unknown() throws {
        let finding = try Self.finding("rank > 0", 2)
        #expect(finding.outcome == .unknown)
        #expect(finding.description.hasSuffix("does not let it through: rank > 0 is NULL"))
    }

    private static let nested = """
        CREATE POLICY own ON teams
            USING (EXISTS (SELECT 1 FROM members WHERE members.team_id = teams.id));
        CREATE POLICY self ON members USING (person = martlet_user());
        CREATE POLICY own ON players FOR SELECT USING (
            name = 'nobody' OR EXISTS (SELECT 1 FROM teams WHERE teams.id = players.team_id));
        CREATE POLICY office ON players TO office, board USING (true);
        CREATE POLICY late ON players AS RESTRICTIVE USING (team_id < 3);
        CREATE POLICY add ON players FOR INSERT WITH CHECK (team_id = 1 AND name <> '');
        """

    @Test("rows of other types bring those that their own policies read")
    func throughPolicies() throws {
        let shown = try Self.judgement(Self.nested, 2, 0)
        #expect(shown.isShown)
        #expect(
            shown.reasons == [
                """
                policy “own” (line 4) lets it through: EXISTS (SELECT 1 FROM teams WHERE teams.id = \
                players.team_id), through teams 1, members 10
                """, "restrictive policy “late” (line 7) lets it through: team_id < 3",
            ])
        // Ben is a member of another team.
        let hidden = try Self.judgement(Self.nested, 2, 0, Viewer(user: "ben"))
        #expect(!hidden.isShown)
        #expect(hidden.reasons.count == 2)
        #expect(hidden.reasons[1] == "policy “office” (line 6) is for board, office")
        #expect(hidden.policies.allSatisfy { $0.parts.allSatisfy(\.rows.isEmpty) })
    }

    @Test("a restrictive policy, a missing privilege and the lack of a policy are reasons")
    func otherReasons() throws {
        let restricted = try Self.judgement(Self.nested, 2, 1, Viewer(roles: ["board"]))
        #expect(
            restricted.reasons == [
                "restrictive policy “late” (line 7) does not let it through: team_id < 3 does not hold"
            ])
        let granted = Self.nested + "GRANT SELECT ON players TO coach;"
        #expect(
            try Self.judgement(granted, 2, 0).reasons
                == ["no GRANT gives this person SELECT on the type"])
        let open = "ALTER TABLE teams DISABLE ROW LEVEL SECURITY"
        #expect(
            try Self.judgement(open, 0, 0).reasons == ["the type is not under row-level security"])
        #expect(try Self.judgement(open, 1, 0).reasons == ["the type has no policy for SELECT"])
    }

    @Test("a new row is judged by WITH CHECK")
    func newRow() throws {
        let evaluator = RuleEvaluator(
            try RulesProgram(Self.nested, schema: Self.schema), for: Viewer(user: "ann"),
            over: Rows(Self.rows))
        let findings = try evaluator.findings(
            .insert, [.text("n"), .integer(1), .text("")], of: 2, isNew: true)
        #expect(findings.map(\.name) == ["office", "late", "add"])
        #expect(
            findings[2].description.hasSuffix(
                "(line 8) does not let it through: team_id = 1; name <> '' does not hold"))
    }

    @Test("a record is explained without reading its whole type")
    func cost() throws {
        let rows = Rows(Self.rows)
        let evaluator = RuleEvaluator(
            try RulesProgram(Self.nested, schema: Self.schema), for: Viewer(user: "ann"), over: rows
        )
        #expect(try evaluator.judgement(of: rows.rows[2][0], type: 2).isShown)
        #expect(rows.scans == 0)
    }

    @Test("what the policies of a type ask, also through the types that they read")
    func inputs() throws {
        let program = try RulesProgram(
            """
            CREATE POLICY a ON teams TO coach USING (name = martlet_claim('club'));
            CREATE POLICY b ON players USING (
                EXISTS (SELECT 1 FROM teams WHERE teams.id = players.team_id) AND martlet_role('x'));
            CREATE POLICY c ON members FOR SELECT USING (person = martlet_user());
            CREATE POLICY d ON members FOR INSERT WITH CHECK (martlet_today() > '2026-01-01');
            """, schema: Self.schema)
        #expect(program.inputs(of: 2) == ViewerInputs(roles: ["coach", "x"], claims: ["club"]))
        #expect(program.inputs(of: 1) == ViewerInputs(user: true))
        #expect(program.inputs(of: program.policies[1][1]) == ViewerInputs(day: true))
        #expect(program.inputs(of: program.policies[2][0]) == ViewerInputs(roles: ["x"]))
    }
}
