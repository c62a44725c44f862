internal import MartletCore
internal import MartletProtocol
internal import SQLiteKit
internal import SQLiteRecords

/// Brings a table that the file did not have before to what the server said of its type meanwhile: the records
/// were kept aside.
///
/// Another program may have taken the table away and brought it back, with the records that it had then, or made it
/// again. Capture is down: these are the server's records, not edits.
struct NewTable {
    let store: LocalStore
    /// The type's position.
    let type: Int

    private typealias Kept = (revision: Revision, values: Attributes)

    private var described: EntityType { store.schema.types[type] }
    private var table: RecordTable { store.tables[type] }
    private var number: Int64 { store.numbers[type] }

    /// - Throws: `StoreError` `.constraint` for a record that the table refuses.
    func settle() throws {
        let columns = NewColumns(
            store: store, type: type, columns: described.attributes.filter { !$0.isGenerated },
            renamed: [])
        let edited = try columns.editedRecords()
        try removeGone(edited)
        try keepBases()
        let name = SQLName.quoted(described.name)
        let isEmpty = try store.connection.integer("SELECT 1 FROM \(name) LIMIT 1") == nil
        var taken: [RecordID: Kept] = [:]
        // Records may have handed a unique value on to each other: all rows are taken out first.
        var moved: [(id: RecordID, image: Attributes)] = []
        let stored = StoredAttributes(connection: store.connection)
        try stored.rewriteAside(of: described.name) { id, revision, attributes in
            var values = Attributes()
            for (name, value) in zip(attributes.names, attributes.values) {
                guard let attribute = described[attribute: name] else { continue }
                attributes[name] = nil
                if !attribute.isGenerated, !attribute.refuses(value) { values[name] = value }
            }
            let isWhole = try !isKnown(id)
            if edited.contains(id) {
                taken[id] = (revision, values)
            } else if let present = try isEmpty ? nil : table.read(id) {
                _ = try table.delete(id)
                moved.append(
                    (id, isWhole ? values : store.stored(present, type: type).with(values)))
            } else if isWhole, isEmpty {
                try insert(id, values)
            } else if isWhole {
                moved.append((id, values))
            } else {
                // Its other values are not known here; a check fetches the record.
                return true
            }
            try remember(id, revision)
            return true
        }
        for (id, image) in moved { try insert(id, image) }
        guard !taken.isEmpty else { return }
        try columns.follow(taken)
        try columns.settleEditedRows()
    }

    /// Deletes the rows of records that were deleted while the file did not have the table. An edited one stays until
    /// the server has refused the edit.
    private func removeGone(_ edited: Set<RecordID>) throws {
        let find = try store.connection.prepare(
            "SELECT id FROM martlet_records WHERE type = ?1 AND revision < 0")
        find.bind(1, integer: number)
        let gone = try find.rows { (row) throws(SQLiteError) in try row.recordID(0) }
        guard !gone.isEmpty else { return }
        for id in gone where !edited.contains(id) { _ = try table.delete(id) }
        try store.connection.execute(
            "DELETE FROM martlet_records WHERE type = \(number) AND revision < 0")
    }

    /// Keeps the confirmed images of edited records again: taking remote change in without the table gave them up.
    private func keepBases() throws {
        try store.connection.execute(
            """
            INSERT OR IGNORE INTO martlet_base(type, id, revision, image)
            SELECT type, id, base_revision, base FROM martlet_changes JOIN martlet_outbox USING (sequence)
            WHERE type = \(number) AND applied = 1 ORDER BY sequence
            """)
    }

    private func insert(_ id: RecordID, _ values: Attributes) throws {
        do {
            try table.insert(id, values, absentMeansNull: true)
        } catch {
            throw Misfit.refusal(error, table: described.name, id: id)
        }
    }

    /// Returns whether the device had the record before: then a part of it may be aside. If it came whole
    /// meanwhile, the device has forgotten that.
    private func isKnown(_ id: RecordID) throws -> Bool {
        let find = try store.connection.statement(
            "SELECT 1 FROM martlet_records WHERE type = ? AND id = ?")
        find.bind(1, integer: number)
        find.bind(2, id)
        defer { find.reset() }
        return try find.step()
    }

    private func remember(_ id: RecordID, _ revision: Revision) throws {
        let put = try store.connection.statement(
            "INSERT OR REPLACE INTO martlet_records(type, id, revision) VALUES (?, ?, ?)")
        put.bind(1, integer: number)
        put.bind(2, id)
        put.bind(3, integer: revision)
        try put.run()
    }
}

extension Attributes {
    /// The attributes with other values for some.
    fileprivate func with(_ values: Attributes) -> Attributes {
        var result = self
        for (name, value) in zip(values.names, values.values) { result[name] = value }
        return result
    }
}

/// A record of the server's that the app's new schema refuses.
enum Misfit {
    static func refusal(_ error: any Error, table: String, id: RecordID) -> any Error {
        guard let error = error as? SQLiteError, error.isConstraint else {
            return StoreError.of(error, table: table, key: id)
        }
        var refusal = StoreError(
            .constraint,
            "A record the server has sent does not fit table “\(table)” as this version declares"
                + " it: \(error.message). Declare the table as wide as the server's.")
        refusal.code = error.extendedCode
        refusal.sql = error.sql
        refusal.table = table
        refusal.key = id
        return refusal
    }
}

extension Attribute {
    /// Whether the column holds its default in place of a value from the server: a null where none
    /// can be.
    func refuses(_ value: Value) -> Bool {
        value == .null && isRequired && hasDefault
    }
}
