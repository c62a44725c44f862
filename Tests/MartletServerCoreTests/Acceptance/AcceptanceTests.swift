import MartletModel
import MartletProtocol
import MartletServerCore
import Testing

@Suite("Acceptance")
struct AcceptanceTests {
    private let schema = Schema(types: [
        EntityType(
            name: "teams", key: "id", keyKind: .integer,
            attributes: [
                Attribute(name: "name", kind: .text),
                Attribute(name: "label", kind: .text, isGenerated: true),
            ]),
        EntityType(
            name: "players", key: "id", keyKind: .integer,
            attributes: [Attribute(name: "team_id", kind: .integer)],
            references: [Reference(attribute: "team_id", target: "teams", onDelete: .cascade)]),
        EntityType(
            name: "notes", key: "id", keyKind: .text,
            attributes: [Attribute(name: "body", kind: .text)]),
    ])
    private let lenient = ValueChecks(value: { _, _, _ in nil }, id: { _, _ in nil })

    private func plan(_ types: TypeChanges...) throws(Refusal) -> SetPlan {
        try SetPlan(ChangeSet(types: types), schema: schema, checks: lenient)
    }

    private func verdict(
        _ plan: SetPlan, device: Int64 = 1, seen: Revision? = nil, dependency: String? = nil,
        followsRetryable: Bool = false, rules: Rules = .everything, facts: SetFacts
    ) -> Refusal? {
        do throws(Refusal) {
            try Acceptance.judge(
                plan,
                in: SetContext(
                    principal: Principal(name: "p"), device: device, seen: seen, maxRevision: 10,
                    dependency: dependency, followsRetryable: followsRetryable),
                facts: facts, schema: schema, rules: rules)
            return nil
        } catch {
            return error
        }
    }

    private func update(_ id: RecordID, base: Revision) throws(Refusal) -> SetPlan {
        try plan(
            TypeChanges(
                name: "teams", update: [id], entries: [RecordEntry(id: id, revision: base)]))
    }

    @Test(
        "an update needs a base not older than anyone else's last change",
        arguments: [
            (base: 3, author: 2, others: 0, fate: RefusalReason?.none),
            (base: 2, author: 2, others: 0, fate: .stale),
            (base: 2, author: 1, others: 2, fate: nil),
            (base: 1, author: 1, others: 2, fate: .stale),
            (base: 4, author: 1, others: 2, fate: .invalid),
        ] as [(base: Revision, author: Int64, others: Revision, fate: RefusalReason?)])
    func bases(base: Revision, author: Int64, others: Revision, fate: RefusalReason?) throws {
        var facts = SetFacts()
        facts.rows[RecordAddress(0, .integer(7))] = RowFacts(
            revision: 3, author: author, others: others)
        #expect(verdict(try update(.integer(7), base: base), facts: facts)?.reason == fate)
    }

    @Test("a temporary id resolves through the facts, or is a dependency that may be waited for")
    func temporaries() throws {
        let plan = try update(.integer(-4), base: 3)
        #expect(plan.earlierTemporaries == [RecordAddress(0, .integer(-4))])
        var facts = SetFacts()
        let lost = verdict(plan, facts: facts)
        #expect(lost?.reason == .dependency)
        #expect(lost?.isRetryable == false)
        #expect(verdict(plan, followsRetryable: true, facts: facts)?.isRetryable == true)
        facts.permanent[RecordAddress(0, .integer(-4))] = .integer(7)
        facts.rows[RecordAddress(0, .integer(7))] = RowFacts(revision: 3, author: 1, others: 0)
        #expect(verdict(plan, facts: facts) == nil)
    }

    @Test("ids created in the set itself are no one else's business")
    func ownTemporaries() throws {
        let plan = try plan(
            TypeChanges(name: "teams", create: [.integer(-1)]),
            TypeChanges(
                name: "players", create: [.integer(-1)],
                entries: [
                    RecordEntry(
                        id: .integer(-1),
                        attributes: Attributes(names: ["team_id"], values: [.integer(-1)]))
                ]))
        #expect(plan.earlierTemporaries.isEmpty)
        #expect(verdict(plan, facts: SetFacts()) == nil)
    }

    @Test("a set has seen no more than its device has reached")
    func seen() throws {
        let plan = try plan(TypeChanges(name: "teams", create: [.integer(-1)]))
        #expect(verdict(plan, seen: 10, facts: SetFacts()) == nil)
        #expect(verdict(plan, seen: 11, facts: SetFacts())?.reason == .invalid)
    }

    @Test("a dependency not decided is waited for")
    func dependencyUndecided() throws {
        let plan = try plan(TypeChanges(name: "teams", create: [.integer(-1)]))
        var facts = SetFacts()
        #expect(verdict(plan, dependency: "x", facts: facts)?.retryAfter == 1)
        facts.isDependencyDecided = true
        #expect(verdict(plan, dependency: "x", facts: facts) == nil)
    }

    @Test("an affected row is judged unless the set names it, and refused without facts")
    func affected() throws {
        let plan = try plan(
            TypeChanges(name: "teams", delete: [.integer(1)]),
            TypeChanges(
                name: "players", update: [.integer(5)],
                entries: [RecordEntry(id: .integer(5), revision: 9)]))
        var facts = SetFacts()
        facts.rows[RecordAddress(0, .integer(1))] = RowFacts(revision: 2, author: 2, others: 0)
        facts.rows[RecordAddress(1, .integer(5))] = RowFacts(revision: 9, author: 2, others: 0)
        func affect(_ id: Int64, _ row: RowFacts?) -> AffectedRow {
            AffectedRow(address: RecordAddress(1, .integer(id)), effect: .removed, facts: row)
        }
        facts.affected = [affect(5, RowFacts(revision: 9, author: 2, others: 0))]
        #expect(verdict(plan, seen: 4, facts: facts) == nil)
        facts.affected = [affect(6, RowFacts(revision: 9, author: 2, others: 0))]
        #expect(verdict(plan, seen: 4, facts: facts)?.reason == .stale)
        #expect(verdict(plan, seen: 9, facts: facts) == nil)
        facts.affected = [affect(6, RowFacts(revision: 9, author: 1, others: 4))]
        #expect(verdict(plan, seen: 4, facts: facts) == nil)
        facts.affected = [affect(6, nil)]
        #expect(verdict(plan, facts: facts)?.reason == .stale)
        // Nobody can have seen a row whose key no device can be sent.
        let address = RecordAddress(1, .integer(0))
        facts.affected = [
            AffectedRow(address: address, effect: .removed, facts: nil, isSendable: false)
        ]
        #expect(verdict(plan, facts: facts) == nil)
        let known = RowFacts(revision: 9, author: 2, others: 0)
        facts.affected = [
            AffectedRow(address: address, effect: .removed, facts: known, isSendable: false)
        ]
        #expect(verdict(plan, seen: 4, facts: facts)?.reason == .stale)
    }

    @Test("permission is judged before anything that would tell whether a record is there")
    func permission() throws {
        let rules = Rules(fallback: Rules.Grant(types: ["teams": .create]))
        let there = try update(.integer(7), base: 99)
        var facts = SetFacts()
        facts.rows[RecordAddress(0, .integer(7))] = RowFacts(revision: 3, author: 2, others: 0)
        let known = verdict(there, rules: rules, facts: facts)
        #expect(known?.reason == .permission)
        #expect(known == verdict(there, rules: rules, facts: SetFacts()))
    }

    @Test("a repeated verdict needs the same content and the same principal")
    func repeatedVerdict() throws {
        func decided(content: Bool, principal: Bool) -> DecidedSet {
            DecidedSet(
                verdict: .accepted(4), isSameContent: content, isSamePrincipal: principal)
        }
        #expect(
            try Acceptance.repeated(decided(content: true, principal: true)) == .accepted(4))
        for (content, principal) in [(false, true), (true, false), (false, false)] {
            #expect(throws: Refusal.self) {
                try Acceptance.repeated(decided(content: content, principal: principal))
            }
        }
    }

    @Test(
        "what no state could accept is refused while reading",
        arguments: [
            (TypeChanges(name: "ghosts"), RefusalReason.unknownType),
            (TypeChanges(name: "teams"), .invalid),
            (TypeChanges(name: "teams", create: [.integer(3)]), .invalid),
            (TypeChanges(name: "teams", update: [.integer(3)]), .invalid),
            (TypeChanges(name: "teams", delete: [.integer(3), .integer(3)]), .invalid),
            (
                TypeChanges(
                    name: "teams", create: [.integer(-3)],
                    entries: [
                        RecordEntry(
                            id: .integer(-3),
                            attributes: Attributes(names: ["label"], values: [.null]))
                    ]), .invalid
            ),
            (
                TypeChanges(
                    name: "teams", create: [.integer(-3)],
                    entries: [
                        RecordEntry(
                            id: .integer(-3),
                            attributes: Attributes(names: ["colour"], values: [.null]))
                    ]), .unknownAttribute
            ),
            (
                TypeChanges(
                    name: "teams", create: [.integer(-3)],
                    entries: [RecordEntry(id: .integer(-4))]), .invalid
            ),
        ] as [(TypeChanges, RefusalReason)])
    func readingRefusesBadSets(changes: TypeChanges, reason: RefusalReason) {
        do throws(Refusal) {
            _ = try plan(changes)
            Issue.record("it was read")
        } catch {
            #expect(error.reason == reason)
            #expect(!error.message.isEmpty)
        }
    }
}
