internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// The values that the server sent of a type while the file did not have its table, or some of its
/// columns, because another program had renamed or dropped them.
struct ReturnedValues {
    let store: LocalStore
    /// The type's position.
    let type: Int
    /// The columns that came back; nil if the whole table did.
    let columns: Set<String>?
    /// The records that the device made and the server accepted while the table was away. They
    /// arrived whole, too.
    var made: Set<RecordID> = []

    private var number: Int64 { store.numbers[type] }

    /// A record as the device knows it.
    private struct Confirmed {
        /// The device's values; nil if it has none.
        var image: Attributes?
        /// The revision; nil if nothing is known of the record.
        var revision: Revision?
    }

    /// Returns the whole records and the deletions that the server sent; nil if there are none. The
    /// values stay kept aside until they are applied.
    /// - Complexity: O(*n*) memory, *n* records that are kept aside.
    func changes() throws -> TypeChanges? {
        var changes = TypeChanges(name: store.schema.types[type].name)
        if columns == nil {
            try keepBases()
            changes.delete = try gone() + refused()
        }
        let stored = StoredAttributes(connection: store.connection)
        try stored.rewriteKeptAside(of: changes.name) { id, revision, attributes in
            if let columns, !attributes.names.contains(where: columns.contains) { return false }
            let confirmed = try confirmed(id)
            let isWhole = columns == nil && (confirmed.revision == nil || made.contains(id))
            let refused = try quarantined(id)
            guard isWhole || confirmed.image != nil || refused != nil else {
                // The record's other values are not known here; a check fetches the record.
                attributes = Attributes()
                return true
            }
            if let columns {
                try outdate(id, columns.intersection(attributes.names), before: revision)
            }
            var image = refused?.image ?? (isWhole ? Attributes() : confirmed.image ?? Attributes())
            // The form that the tables refused may be newer than the values kept aside.
            if refused?.revision ?? 0 <= revision {
                for (name, value) in zip(attributes.names, attributes.values) {
                    image[name] = value
                }
            }
            changes.entries.append(
                RecordEntry(
                    id: id,
                    revision: max(revision, confirmed.revision ?? 0, refused?.revision ?? 0),
                    attributes: withoutNulls(image)))
            return false
        }
        changes.update = changes.entries.map(\.id)
        return changes.entries.isEmpty && changes.delete.isEmpty ? nil : changes
    }

    /// Restores the confirmed images of edited records. They were given up when remote change was
    /// applied without the table.
    private func keepBases() throws {
        try store.connection.execute(
            """
            INSERT OR IGNORE INTO martlet_base(type, id, revision, image)
            SELECT type, id, base_revision, base FROM martlet_changes JOIN martlet_outbox USING (sequence)
            WHERE type = \(number) AND applied = 1 ORDER BY sequence
            """)
    }

    /// Returns the records that were deleted while the file did not have the table, and restores
    /// their revisions.
    private func gone() throws -> [RecordID] {
        let find = try store.connection.prepare(
            "SELECT id FROM martlet_records WHERE type = ?1 AND revision < 0")
        find.bind(1, integer: number)
        let gone = try find.rows { (row) throws(SQLiteError) in try row.recordID(0) }
        if !gone.isEmpty {
            try store.connection.execute(
                """
                UPDATE martlet_records SET revision = -1 - revision
                WHERE type = \(number) AND revision < 0
                """)
        }
        return gone
    }

    /// Returns the new records that the server refused while the file did not have the table. They
    /// are parked, and their rows have to go.
    private func refused() throws -> [RecordID] {
        let find = try store.connection.prepare(
            """
            SELECT id FROM martlet_parked_changes AS parked
            WHERE type = ?1 AND operation = \(RecordOperation.create.rawValue)
                AND NOT EXISTS (SELECT 1 FROM martlet_records
                    WHERE type = ?1 AND id = parked.id)
                AND NOT EXISTS (SELECT 1 FROM martlet_changes WHERE type = ?1 AND id = parked.id)
                AND NOT EXISTS (SELECT 1 FROM martlet_withheld WHERE type = ?1 AND id = parked.id)
                AND NOT EXISTS (SELECT 1 FROM martlet_aside
                    WHERE type = ?2 AND id = parked.id)
            """)
        find.bind(1, integer: number)
        find.bind(2, text: store.schema.types[type].name)
        return try find.rows { (row) throws(SQLiteError) in try row.recordID(0) }
    }

    /// Makes edits stale that were made without a value which the server had sent: their base
    /// becomes an earlier revision, and the server refuses them. Sent edits stay unchanged.
    private func outdate(
        _ id: RecordID, _ names: Set<String>, before revision: Revision
    ) throws {
        let find = try store.connection.prepare(
            """
            SELECT change.sequence, change.operation, change.after FROM martlet_changes AS change
                JOIN martlet_outbox AS queued ON queued.sequence = change.sequence AND NOT queued.sent
            WHERE change.type = ?1 AND change.id = ?2 AND change.base_revision >= ?3
            """)
        find.bind(1, integer: number)
        find.bind(2, id)
        find.bind(3, integer: revision)
        var blind: [Int64] = []
        while try find.step() {
            let isDelete = find.integer(1) == RecordOperation.delete.rawValue
            let after = find.isNull(2) ? [] : try SyncCoder.decodeAttributes(find.blob(2)).names
            if isDelete || !names.isDisjoint(with: after) { blind.append(find.integer(0)) }
        }
        find.reset()
        let write = try store.connection.prepare(
            """
            UPDATE martlet_changes SET base_revision = ?4 - 1
            WHERE type = ?1 AND id = ?2 AND sequence = ?3
            """)
        for sequence in blind {
            write.bind(1, integer: number)
            write.bind(2, id)
            write.bind(3, integer: sequence)
            write.bind(4, integer: revision)
            try write.run()
            write.reset()
        }
        try outdateWithheld(id, names, before: revision)
    }

    /// Does the same for an edit that no set can carry yet.
    private func outdateWithheld(
        _ id: RecordID, _ names: Set<String>, before revision: Revision
    ) throws {
        let write = try store.connection.statement(
            """
            UPDATE martlet_withheld SET revision = ?3 - 1
            WHERE type = ?1 AND id = ?2 AND revision >= ?3 AND EXISTS (
                SELECT 1 FROM martlet_withheld_values WHERE type = ?1 AND id = ?2 AND name = ?4)
            """)
        for name in names {
            write.bind(1, integer: number)
            write.bind(2, id)
            write.bind(3, integer: revision)
            write.bind(4, text: name)
            try write.run()
        }
    }

    private func confirmed(_ id: RecordID) throws -> Confirmed {
        let find = try store.connection.statement(
            """
            SELECT (SELECT revision FROM martlet_records WHERE type = ?1 AND id = ?2), base.type, base.image
            FROM (SELECT 1) LEFT JOIN martlet_base AS base ON base.type = ?1 AND base.id = ?2
            """)
        find.bind(1, integer: number)
        find.bind(2, id)
        defer { find.reset() }
        guard try find.step() else { return Confirmed() }
        var confirmed = Confirmed(revision: find.isNull(0) ? nil : find.integer(0))
        if find.isNull(1) {
            confirmed.image = try store.tables[type].read(id).map {
                store.stored($0, type: type)
            }
        } else if !find.isNull(2) {
            confirmed.image = try SyncCoder.decodeAttributes(find.blob(2))
        }
        return confirmed
    }

    /// Returns a whole record in the form that the tables refused; nil if it is not in quarantine.
    private func quarantined(_ id: RecordID) throws -> (image: Attributes, revision: Revision)? {
        let find = try store.connection.statement(
            "SELECT attributes, revision FROM martlet_quarantine WHERE type = ? AND id = ?")
        find.bind(1, text: store.schema.types[type].name)
        find.bind(2, id)
        defer { find.reset() }
        guard try find.step() else { return nil }
        return (try SyncCoder.decodeAttributes(find.blob(0)), find.integer(1))
    }

    /// Returns the attributes without the nulls of columns that the table has, because a whole
    /// record does not name them.
    private func withoutNulls(_ image: Attributes) -> Attributes {
        var result = Attributes()
        for (name, value) in zip(image.names, image.values)
        where value != .null || store.schema.types[type][attribute: name] == nil {
            result[name] = value
        }
        return result
    }
}
