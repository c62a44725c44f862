internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit

/// The result of joining two edits of one record, one after the other.
private enum JoinedChange {
    /// The first edit made the record, and the second deleted it.
    case nothing
    case change(StoredChange)
}

extension Outbox {
    /// Joins the newest set into the one before it. Neither was ever sent. The order of the sets is
    /// the order of their edits.
    /// - Parameter isBefore: Whether the edits of the newest set come first instead.
    /// - Returns: False if nothing is left of either; the set is removed then.
    /// - Throws: `StoreError` `.tooLarge` if the joined set could never be sent.
    func join(_ later: Int64, into earlier: Int64, isBefore: Bool = false) throws -> Bool {
        let before = try changes(of: earlier)
        var first = Dictionary(uniqueKeysWithValues: before.map { ($0.key, $0) })
        for change in try changes(of: later) {
            guard let old = first[change.key] else {
                first[change.key] = change
                continue
            }
            switch try isBefore ? joined(change, old) : joined(old, change) {
            case .nothing: first[change.key] = nil
            case .change(let both): first[change.key] = both
            }
        }
        if first.values.contains(where: { $0.operation == .delete }) {
            // The joined set has seen only what both sets had seen.
            let seen = try store.connection.statement(
                """
                UPDATE martlet_outbox SET seen = min(seen, (
                    SELECT seen FROM martlet_outbox WHERE sequence = ?1)) WHERE sequence = ?2
                """)
            seen.bind(1, integer: later)
            seen.bind(2, integer: earlier)
            try seen.run()
            try noteBasis(of: earlier)
        }
        try remove(later)
        try clear(earlier)
        for change in first.values.sorted(by: { ($0.number, $0.id) < ($1.number, $1.id) }) {
            try insertChange(change, sequence: earlier)
            try noteReferences(of: change, sequence: earlier)
        }
        // A record that was made and deleted again has no confirmed image either.
        try store.connection.run(
            """
            DELETE FROM martlet_base AS base WHERE NOT EXISTS (
                SELECT 1 FROM martlet_changes AS change
                WHERE change.type = base.type AND change.id = base.id)
            AND NOT EXISTS (
                SELECT 1 FROM martlet_withheld AS kept
                WHERE kept.type = base.type AND kept.id = base.id)
            """)
        guard !first.isEmpty else {
            try remove(earlier)
            try store.setState("nextSequence", .integer(earlier))
            return false
        }
        try store.setState("nextSequence", .integer(later))
        try book(earlier, records: first.count, bytes: Self.bytes(of: first.values))
        return true
    }

    /// Joins the newest set into an earlier one, as its first part, if both fit into one set.
    /// Neither was ever sent. If they do not fit, they stay as they are.
    func prependIfItFits(_ later: Int64, to earlier: Int64) throws {
        let sums = try store.connection.statement(
            "SELECT sum(records), sum(bytes) FROM martlet_outbox WHERE sequence IN (?1, ?2)")
        sums.bind(1, integer: later)
        sums.bind(2, integer: earlier)
        defer { sums.reset() }
        guard try sums.step(), sums.integer(0) <= Limits.recordsPerChangeSet,
            sums.integer(1) <= Limits.savedSetBytes
        else { return }
        sums.reset()
        _ = try join(later, into: earlier, isBefore: true)
    }

    private func book(_ sequence: Int64, records: Int, bytes: Int) throws {
        try checkSize(records: records, bytes: bytes)
        let row = try store.connection.statement(
            "UPDATE martlet_outbox SET records = ?2, bytes = ?3 WHERE sequence = ?1")
        row.bind(1, integer: sequence)
        row.bind(2, integer: Int64(records))
        row.bind(3, integer: Int64(bytes))
        try row.run()
    }

    private func joined(_ first: StoredChange, _ second: StoredChange) throws -> JoinedChange {
        switch (first.operation, second.operation) {
        case (.create, .delete): return .nothing
        case (_, .delete): return .change(first.becoming(.delete, after: nil))
        case (.delete, _):
            // The record exists again under its key: attributes that the second edit does not set
            // become null.
            var after = Attributes()
            if let base = first.base { after = try SyncCoder.decodeAttributes(base) }
            for index in after.names.indices { after.setValue(.null, at: index) }
            after.take(try second.attributes())
            return .change(first.becoming(.update, after: try SyncCoder.encode(after)))
        default:
            var after = try first.attributes()
            after.take(try second.attributes())
            return .change(first.becoming(first.operation, after: try SyncCoder.encode(after)))
        }
    }
}

extension Attributes {
    /// Sets all attributes of another list, over the own ones.
    fileprivate mutating func take(_ other: Attributes) {
        for (name, value) in zip(other.names, other.values) { self[name] = value }
    }
}

extension StoredChange {
    fileprivate func becoming(
        _ operation: RecordOperation, after: [UInt8]?
    ) -> StoredChange {
        StoredChange(
            number: number, type: type, id: id, operation: operation, baseRevision: baseRevision,
            base: base, after: after)
    }
}
