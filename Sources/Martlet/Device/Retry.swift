internal import MartletCore
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Makes a refused set's edits again, based on what is there now.
struct Retry {
    let store: LocalStore

    /// Runs in the caller's transaction, with capture off.
    /// - Returns: The new set's identifier.
    func run(_ sequence: Int64, identifier: String, now: Int64) throws -> String {
        let outbox = Outbox(store: store)
        var changes = try outbox.changes(of: sequence, in: "martlet_parked_changes")
        for index in changes.indices {
            try resolve(&changes[index])
        }
        let remade = try changes.map { try remake($0) }
        do {
            try RedoneSet(store: store, outbox: outbox).apply(changes)
        } catch let refusal as RedoRefusal {
            throw StoreError(
                .value, refusal.message + " Drop the refused change, or make the edit anew.")
        }
        // The bases were kept by the step before; this adds the set itself.
        try outbox.enqueue(remade, identifier: identifier, now: now)
        return identifier
    }

    private func remake(_ change: StoredChange) throws -> RecordChange {
        RecordChange(
            type: change.type, id: change.id, operation: change.operation,
            before: nil,
            after: try change.after.map { try SyncCoder.decodeAttributes($0) } ?? Attributes())
    }

    /// Puts the permanent ids in that have become known since the set was parked.
    private func resolve(_ change: inout StoredChange) throws {
        var assigned: [RecordKey: Int64] = [:]
        var used: [RecordKey] = []
        if change.operation != .create {
            used.append(RecordKey(type: change.type, id: change.id))
        }
        let type = store.schema.types[change.type]
        if let after = change.after {
            let attributes = try SyncCoder.decodeAttributes(after)
            for reference in type.references {
                guard let value = attributes[reference.attribute], let id = RecordID(value),
                    let target = store.schema.index(of: reference.target)
                else { continue }
                used.append(RecordKey(type: target, id: id))
            }
        }
        for key in used {
            if case .integer(let permanent) = try store.resolve(key.id, type: key.type),
                RecordID.integer(permanent) != key.id
            {
                assigned[key] = permanent
            }
        }
        _ = try IDRewriter(schema: store.schema, assigned: assigned).rewrite(&change)
    }
}
