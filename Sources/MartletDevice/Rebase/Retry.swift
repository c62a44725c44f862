internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Redoes a refused set's edits, based on the present rows.
struct Retry {
    let store: LocalStore

    /// Redoes the edits. Runs in the caller's transaction, with capture off.
    /// - Returns: The new set's identifier.
    /// - Throws: `StoreError` `.value` if the edits no longer fit.
    func run(_ sequence: Int64, identifier: String, now: Int64) throws -> String {
        let outbox = Outbox(store: store)
        var changes = try outbox.changes(of: sequence, in: "martlet_parked_changes")
        let renamed = try newIDs(of: changes)
        for index in changes.indices {
            try resolve(&changes[index], renamed)
        }
        do {
            try SetReplay(store: store, outbox: outbox).apply(changes)
        } catch let refusal as ReplayRefusal {
            throw StoreError(
                .value, refusal.message + " Drop the refused change, or make the edit again.")
        }
        // The step before stored the bases; this adds the set itself.
        try outbox.enqueue(
            remade: try changes.map { try remade($0, outbox: outbox) }, identifier: identifier,
            now: now)
        return identifier
    }

    /// Returns a change based on the present confirmed state of its record.
    private func remade(_ change: StoredChange, outbox: Outbox) throws -> StoredChange {
        let base = try outbox.base(change.number, change.id) ?? confirmedKeptAside(change)
        return StoredChange(
            number: change.number, type: change.type, id: change.id, operation: change.operation,
            baseRevision: base.revision, base: base.image, after: change.after)
    }

    /// Returns the confirmed state of a record whose type the schema no longer has.
    private func confirmedKeptAside(
        _ change: StoredChange
    ) throws -> (revision: Revision, image: [UInt8]?) {
        var keptAside = KeptAsideTable(store: store)
        let kept = try keptAside.record(store.typeName(ofNumber: change.number), change.id)
        let revision = try Outbox(store: store).confirmedRevision(change.number, change.id)
        return (
            max(revision ?? 0, kept?.revision ?? 0),
            try kept.map { try SyncCoder.encode($0.attributes.withoutNulls()) }
        )
    }

    /// Returns new temporary ids for records that are created under an id that was used before. The
    /// server accepts each id once, and other references to it mean the other record.
    private func newIDs(of changes: [StoredChange]) throws -> [RecordKey: Int64] {
        var renamed: [RecordKey: Int64] = [:]
        var next = try store.counter("nextTemporaryID")
        for change in changes where change.operation == .create && change.id.isTemporary {
            let isTaken =
                try store.permanentID(of: change.key) != nil
                || change.type.map { try store.tables[$0].exists(change.id) } ?? false
            guard isTaken else { continue }
            renamed[change.key] = next
            next -= 1
        }
        if !renamed.isEmpty { try store.setState("nextTemporaryID", .integer(next)) }
        return renamed
    }

    /// Inserts the permanent ids that have become known since the set was parked.
    private func resolve(
        _ change: inout StoredChange, _ renamed: [RecordKey: Int64]
    ) throws {
        var assigned = renamed
        var used: [RecordKey] = []
        if change.operation != .create { used.append(change.key) }
        if let type = change.type, let after = change.after {
            let attributes = try SyncCoder.decodeAttributes(after)
            for reference in store.schema.types[type].references {
                guard let value = attributes[reference.attribute], let id = RecordID(value),
                    let target = store.schema.index(of: reference.target)
                else { continue }
                used.append(RecordKey(type: store.numbers[target], id: id))
            }
        }
        for key in used where assigned[key] == nil {
            if let permanent = try store.permanentID(of: key) { assigned[key] = permanent }
        }
        _ = try IDRewriter(store: store, assigned: assigned).rewrite(&change)
    }
}
