internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Stores refused sets, and the receipt of every decided set.
struct Parking {
    let store: LocalStore

    /// Moves a set out of the queue, with the images that it was made from.
    /// - Parameter isTruthCut: Whether the answer held only some of the server's rows.
    func park(
        _ own: QueuedSet, reason: RefusalReason, message: String, isTruthCut: Bool = false,
        now: Int64
    ) throws {
        let row = try store.connection.statement(
            """
            INSERT INTO martlet_parked(
                sequence, identifier, reason, message, seen, timestamp, at, cut)
            SELECT sequence, identifier, ?, ?,
                ifnull((SELECT revision FROM martlet_ground AS basis
                    WHERE basis.sequence = own.sequence), seen),
                timestamp, ?, ? FROM martlet_outbox AS own
            WHERE sequence = ?
            """)
        row.bind(1, text: reason.rawValue)
        row.bind(2, text: message)
        row.bind(3, integer: now)
        row.bind(4, integer: isTruthCut ? 1 : 0)
        row.bind(5, integer: own.sequence)
        try row.run()
        let changes = try store.connection.statement(
            """
            INSERT INTO martlet_parked_changes(
                sequence, type, id, operation, base_revision, base, after)
            SELECT sequence, type, id, operation, base_revision, base, after FROM martlet_changes
            WHERE sequence = ?
            """)
        changes.bind(1, integer: own.sequence)
        try changes.run()
        try Outbox(store: store).remove(own.sequence)
        try keep(
            Receipt(
                identifier: own.identifier, outcome: .refused, reason: reason, message: message),
            sequence: own.sequence, now: now)
    }

    /// Stores the receipt of a set. A later one of the same set replaces it.
    func keep(_ receipt: Receipt, sequence: Int64, now: Int64) throws {
        let row = try store.connection.statement(
            """
            INSERT OR REPLACE INTO martlet_receipts(
                sequence, identifier, outcome, revision, reason, message, at)
            VALUES (?, ?, ?, ?, ?, ?, ?)
            """)
        row.bind(1, integer: sequence)
        row.bind(2, text: receipt.identifier)
        row.bind(3, text: receipt.outcome.rawValue)
        if let revision = receipt.revision {
            row.bind(4, integer: revision)
        } else {
            row.bindNull(4)
        }
        if let reason = receipt.reason {
            row.bind(5, text: reason.rawValue)
        } else {
            row.bindNull(5)
        }
        if let message = receipt.message { row.bind(6, text: message) } else { row.bindNull(6) }
        row.bind(7, integer: now)
        try row.run()
        // This is not done for each set, because it looks for the oldest receipt.
        if sequence & 255 == 0 { try forgetReceipts(upTo: sequence - Self.mostReceipts) }
    }

    /// The number of receipts that the file keeps, in addition to those of parked sets. Only the
    /// list of receipts reads them; the effect of a verdict is in the tables.
    static let mostReceipts: Int64 = 10_000
    /// The most receipts that are deleted at once, because an old file may hold very many.
    private static let mostForgotten = 1_024

    private func forgetReceipts(upTo sequence: Int64) throws {
        try store.connection.run(
            """
            DELETE FROM martlet_receipts WHERE sequence IN (
                SELECT sequence FROM martlet_receipts WHERE sequence <= \(sequence)
                    AND sequence NOT IN (SELECT sequence FROM martlet_parked)
                ORDER BY sequence LIMIT \(Self.mostForgotten))
            """)
    }

    /// Returns all refused sets, oldest first.
    /// - Complexity: O(*n*) in the changes of these sets.
    func list() throws -> [ParkedSet] {
        let rows = try store.connection.statement(
            """
            SELECT sequence, identifier, reason, message, timestamp, cut FROM martlet_parked
            ORDER BY sequence
            """)
        defer { rows.reset() }
        var sets: [ParkedSet] = []
        while try rows.step() {
            let changes = try Outbox(store: store).changes(
                of: rows.integer(0), in: "martlet_parked_changes")
            sets.append(
                ParkedSet(
                    identifier: rows.text(1), reason: RefusalReason(rawValue: rows.text(2)),
                    message: rows.text(3), timestamp: rows.text(4),
                    isTruthCut: rows.integer(5) != 0,
                    changes: try changes.map { try shown($0) }))
        }
        return sets
    }

    private func shown(_ change: StoredChange) throws -> ParkedChange {
        let operation: ParkedChange.Operation =
            switch change.operation {
            case .create: .create
            case .update: .update
            case .delete: .delete
            }
        func shown(_ attributes: Attributes) -> RecordValues {
            RecordValues(attributes, of: change.type.map { store.schema.types[$0] })
        }
        return ParkedChange(
            type: try store.typeName(ofNumber: change.number), id: change.id, operation: operation,
            baseRevision: change.baseRevision,
            base: try change.base.map { shown(try SyncCoder.decodeAttributes($0)) },
            mine: try change.after.map { shown(try SyncCoder.decodeAttributes($0)) },
            theirs: try confirmed(change).map(shown))
    }

    /// Returns a record as the server has it: the base under unconfirmed edits, or else the row
    /// itself. If the schema no longer has its type, returns the values kept aside.
    private func confirmed(_ change: StoredChange) throws -> Attributes? {
        if let base = try Outbox(store: store).base(change.number, change.id) {
            return try base.image.map { try SyncCoder.decodeAttributes($0) }
        }
        guard let type = change.type else {
            var keptAside = KeptAsideTable(store: store)
            return try keptAside.record(store.typeName(ofNumber: change.number), change.id)?
                .attributes.withoutNulls()
        }
        return try store.tables[type].read(change.id)?.withoutNulls()
    }

    /// Returns the sequence of the refused set with an identifier.
    /// - Throws: `StoreError` `.unknown` if there is none.
    func sequence(of identifier: String) throws -> Int64 {
        let find = try store.connection.statement(
            "SELECT sequence FROM martlet_parked WHERE identifier = ?")
        find.bind(1, text: identifier)
        defer { find.reset() }
        guard try find.step() else {
            throw StoreError(
                .unknown,
                "There is no refused change set \(identifier); list them to see which"
                    + " there are.")
        }
        return find.integer(0)
    }

    /// Deletes a refused set.
    func remove(_ sequence: Int64) throws {
        for sql in [
            "DELETE FROM martlet_parked WHERE sequence = ?",
            "DELETE FROM martlet_parked_changes WHERE sequence = ?",
        ] {
            let statement = try store.connection.statement(sql)
            statement.bind(1, integer: sequence)
            try statement.run()
        }
    }
}
