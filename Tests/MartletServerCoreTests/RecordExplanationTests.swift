import MartletModel
import MartletRules
import MartletServerCore
import Testing

/// A data set of teams and players in memory, which notes what is read of it.
private final class NotingSource: RecordSource {
    let schema = Schema(types: [
        EntityType(
            name: "teams", key: "id", keyKind: .integer,
            attributes: [Attribute(name: "owner", kind: .text)]),
        EntityType(
            name: "players", key: "id", keyKind: .integer,
            attributes: [Attribute(name: "team_id", kind: .integer)]),
    ])
    let revision: Revision = 9

    struct Read: Hashable {
        let type: Int
        let column: Int
        let values: [Value]?
    }

    var standing: ViewStanding?
    private(set) var reads: [Read] = []
    private let stored: [[RuleRow]] = [
        [[.integer(1), .text("ann")], [.integer(2), .text("ben")]],
        [[.integer(5), .integer(1)], [.integer(6), .integer(2)]],
    ]

    func rows(of type: Int, where column: Int, isAmong values: [Value]?) -> [RuleRow] {
        reads.append(Read(type: type, column: column, values: values))
        return stored[type].filter { values?.contains($0[column]) ?? true }
    }

    func standing(
        of id: RecordID, in key: TypeViewKey, givenTo identity: String
    ) -> ViewStanding? { standing }

    func givenViews() -> [String: [Int64]] { ["token:b": [0, -1], "user:a": [7, 0]] }

    func shownCount(of view: Int64) -> Int { Int(view) * 10 }
}

@Suite("Explanations of records")
struct RecordExplanationTests {
    private static let rules = """
        CREATE POLICY own ON teams USING (owner = martlet_user());
        CREATE POLICY own ON players
            USING (EXISTS (SELECT 1 FROM teams WHERE teams.id = players.team_id));
        GRANT SELECT ON teams TO PUBLIC;
        GRANT SELECT ON players TO member;
        """

    private static func explain(
        _ id: Int64, _ source: NotingSource, roles: [String] = ["member"]
    ) throws -> RecordExplanation {
        try RecordExplanation(
            of: .integer(id), type: 1,
            for: Principal(name: "test", user: "ann", roles: roles),
            by: RulesProgram(rules, schema: source.schema), now: 0, in: source)
    }

    @Test("read the record, and what its policies look up, and nothing else")
    func cost() throws {
        let source = NotingSource()
        let explanation = try Self.explain(5, source)
        #expect(explanation.judgement?.isShown == true)
        #expect(
            explanation.judgement?.policies.first?.parts.first?.rows.map(\.id) == [.integer(1)])
        #expect(
            source.reads == [
                .init(type: 1, column: 0, values: [.integer(5)]),
                .init(type: 0, column: 0, values: [.integer(1)]),
            ])
    }

    @Test(
        "say since when the view shows the record, and how current the view is",
        arguments: [
            (
                nil, 9, nil,
                ["The view never listed it.", "No device of ann was given this view yet."]
            ),
            (
                ViewStanding.Member(isShown: true, since: 0), 9, nil,
                [
                    "The view listed it when it was computed for the first time.",
                    "No device of ann was given this view yet.",
                ]
            ),
            (
                ViewStanding.Member(isShown: false, since: 4), 7, GivenView(first: 2, last: 7),
                [
                    "The view hides it since revision 4.",
                    "The view was computed up to revision 7; the log ends at 9.",
                    "Devices of ann were given this view from revision 2 on.",
                ]
            ),
        ] as [(ViewStanding.Member?, Revision, GivenView?, [String])])
    func listed(
        member: ViewStanding.Member?, revision: Revision, given: GivenView?, sentences: [String]
    ) throws {
        let source = NotingSource()
        source.standing = ViewStanding(number: 3, revision: revision, member: member, given: given)
        #expect(try Self.explain(5, source).sentences.suffix(sentences.count) == sentences[...])
    }

    @Test("say that a record is not there, and that somebody sees nothing of a type")
    func nothing() throws {
        let gone = try Self.explain(8, NotingSource())
        #expect(gone.judgement == nil && gone.listing == .uncomputed)
        let stranger = try Self.explain(5, NotingSource(), roles: [])
        #expect(
            stranger.sentences == [
                "players 5 is hidden from ann.",
                "- no GRANT gives this person SELECT on the type",
                "ann sees nothing of players, so no view lists it.",
            ])
    }

    @Test("count the rows that people see, and those that their devices were given last")
    func counts() throws {
        let source = NotingSource()
        let counts = try source.counts(
            for: Principal(name: "test", user: "ann", roles: ["member"]),
            by: RulesProgram(Self.rules, schema: source.schema), now: 0)
        #expect(counts == RowCounts(identity: "user:ann", counts: [1, 1]))
        #expect(
            try source.givenCounts() == [
                RowCounts(identity: "token:b", counts: [2, 0]),
                RowCounts(identity: "user:a", counts: [70, 2]),
            ])
    }
}
