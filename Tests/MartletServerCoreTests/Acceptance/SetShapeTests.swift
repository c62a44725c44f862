import MartletModel
import MartletProtocol
import MartletServerCore
import Testing

/// The reader of the wire finds most of this first; a set may come another way.
@Suite("Sets whose shape no state could accept")
struct SetShapeTests {
    private static let schema = Schema(types: [
        EntityType(
            name: "teams", key: "id", keyKind: .integer,
            attributes: [Attribute(name: "name", kind: .text)])
    ])
    private static let name = Attributes(names: ["name"], values: ["A"])

    private static func entry(
        _ id: Int64, _ revision: Revision? = nil, _ attributes: Attributes = Attributes()
    ) -> RecordEntry {
        RecordEntry(id: .integer(id), revision: revision, attributes: attributes)
    }

    private static func teams(
        create: [RecordID] = [], update: [RecordID] = [], delete: [RecordID] = [],
        _ entries: RecordEntry...
    ) -> TypeChanges {
        TypeChanges(name: "teams", create: create, update: update, delete: delete, entries: entries)
    }

    private func refusal(_ set: ChangeSet) -> Refusal? {
        do throws(Refusal) {
            _ = try SetPlan(
                set, schema: Self.schema,
                checks: ValueChecks(value: { _, _, _ in nil }, id: { _, _ in nil }))
            return nil
        } catch {
            return error
        }
    }

    @Test(
        "each is refused with a sentence of its own",
        arguments: [
            (
                [teams(create: [.integer(-1)]), teams(create: [.integer(-2)])],
                "listed more than once"
            ),
            (
                [teams(create: [.integer(-1)], entry(-1, nil, name), entry(-1, nil, name))],
                "attributes twice"
            ),
            (
                [teams(delete: [.integer(1)], entry(1, 1, name))],
                "a deleted record of “teams” has attributes"
            ),
            ([teams(update: [.integer(1)], entry(1, -1, name))], "a negative revision"),
            ([teams(delete: [.integer(1)], entry(1, -1))], "a negative revision"),
            (
                [
                    teams(
                        update: [.integer(1)],
                        entry(1, 1, Attributes(names: ["revision"], values: [4])))
                ], "“revision” is a word of the wire"
            ),
            (
                [
                    teams(
                        update: [.integer(1)],
                        entry(1, 1, Attributes(names: ["martlet_mine"], values: [4])))
                ], "“martlet_mine” is a word of the wire"
            ),
        ] as [([TypeChanges], String)])
    func shapes(types: [TypeChanges], sentence: String) {
        let refusal = refusal(ChangeSet(types: types))
        #expect(refusal?.reason == .invalid)
        #expect(refusal?.isRetryable == false)
        #expect(refusal?.message.contains(sentence) == true, "\(refusal?.message ?? "accepted")")
    }

    @Test("what its device has seen is no number below zero", arguments: [-1, 0] as [Revision])
    func seen(revision: Revision) {
        var set = ChangeSet(types: [Self.teams(create: [.integer(-1)])])
        set.seen = revision
        #expect(refusal(set)?.reason == (revision < 0 ? .invalid : nil))
        #expect(refusal(set)?.message.contains("“seen” is negative") ?? true)
    }
}
