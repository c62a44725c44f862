import MartletModel
import MartletProtocol
import MartletServerCore

/// One change set: read, written, turned into deltas, and read against a schema.
enum ChangesTarget: FuzzTarget {
    static let name = "changes"

    static func check(_ input: [UInt8]) throws {
        guard let set = try? SyncCoder.decodeChangeSet(input) else { return }
        try hold(set.defect == nil, "a stored set has no defect")
        let again = try SyncCoder.decodeChangeSet(try SyncCoder.encode(set))
        try hold(again == set, "a set is the same when written and read again")
        try checkPlan(of: set)
        if set.types.allSatisfy(canBeAccepted) { try checkDeltas(of: set) }
    }

    /// No set with a negative revision or an empty id is ever accepted.
    private static func canBeAccepted(_ changes: TypeChanges) -> Bool {
        changes.entries.allSatisfy { $0.revision ?? 0 >= 0 }
            && (changes.entries.map(\.id) + changes.delete).allSatisfy { $0 != .text("") }
    }

    private static func checkDeltas(of set: ChangeSet) throws {
        let deltas = try Delta.list(of: set, revision: 7, seconds: 1)
        let batch = DeltaBatch(from: 6, deltas: deltas, nextVersion: 7)
        let bytes = SyncCoder.encode(batch)
        try hold(
            try SyncCoder.decodeDeltaBatch(bytes) == batch,
            "the deltas of a set are the same when written and read again")
        let joined =
            SyncCoder.deltaHead(DeltaBatch(from: 6, deltas: [], nextVersion: 7))
            + (try SyncCoder.encodeDeltas(of: set, revision: 7, seconds: 1))
            + SyncCoder.deltaTail(nextVersion: 7)
        try hold(joined == bytes, "a batch put together of pieces is the batch")
    }

    private static func checkPlan(of set: ChangeSet) throws {
        let plan: SetPlan
        do {
            plan = try SetPlan(set, schema: schema, checks: checks)
        } catch {
            try hold(!error.message.isEmpty, "a refusal says why")
            return
        }
        for change in plan.creates + plan.updates {
            let type = schema.types[change.type]
            for name in change.attributes.names {
                try hold(
                    type[attribute: name]?.isGenerated == false,
                    "only columns that can be written are planned to be written")
            }
        }
        for change in plan.creates {
            if case .integer(let id) = change.id {
                try hold(id < 0, "new records have temporary ids")
            }
        }
    }

    private static let schema = Schema(types: [
        EntityType(
            name: "teams", key: "id", keyKind: .integer,
            attributes: [
                Attribute(name: "name", kind: .text, isRequired: true),
                Attribute(name: "founded", kind: .integer),
                Attribute(name: "size", kind: .real, isGenerated: true),
            ], uniques: [["name"]]),
        EntityType(
            name: "players", key: "id", keyKind: .text,
            attributes: [
                Attribute(name: "team", kind: .integer), Attribute(name: "photo", kind: .blob),
                Attribute(name: "fee", kind: .numeric), Attribute(name: "active", kind: .boolean),
            ], references: [Reference(attribute: "team", target: "teams", onDelete: .cascade)]),
    ])

    private static let checks = ValueChecks(
        value: { _, _, _ in nil },
        id: { id, type in
            switch (id, type.keyKind) {
            case (.integer, .integer), (.text, .text): nil
            default: "expected an id of another kind"
            }
        })
}
