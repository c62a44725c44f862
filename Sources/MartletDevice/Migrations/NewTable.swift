package import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Fills a table that the file did not have before with the records that the server sent meanwhile,
/// which were kept aside.
///
/// Capture is off, because these are the server's records, and not edits.
struct NewTable {
    let store: LocalStore
    /// The type's position.
    let type: Int

    private typealias Kept = (revision: Revision, values: Attributes)

    private var described: EntityType { store.schema.types[type] }
    private var table: RecordTable { store.tables[type] }
    private var number: Int64 { store.numbers[type] }

    /// Fills the table.
    /// - Throws: `StoreError` `.constraint` for a record that the table refuses.
    func fill() throws {
        let columns = NewColumns(
            store: store, type: type, columns: described.attributes.filter { !$0.isGenerated },
            renamed: [])
        let edited = try columns.editedRecords()
        var taken: [RecordID: Kept] = [:]
        let stored = StoredAttributes(connection: store.connection)
        try stored.rewriteKeptAside(of: described.name) { id, revision, attributes in
            var values = Attributes()
            for (name, value) in zip(attributes.names, attributes.values) {
                guard let attribute = described[attribute: name] else { continue }
                attributes[name] = nil
                if !attribute.isGenerated, !attribute.refuses(value) { values[name] = value }
            }
            if edited.contains(id) {
                taken[id] = (revision, values)
            } else if try isKnown(id) {
                // The record's other values are not known here; a check fetches the record.
                return true
            } else {
                try insert(id, values)
            }
            try remember(id, revision)
            return true
        }
        try MissingRecords(store: store, type: type).forget()
        guard !taken.isEmpty else { return }
        try columns.follow(taken)
        try columns.fillEditedRows()
    }

    private func insert(_ id: RecordID, _ values: Attributes) throws {
        do {
            try table.insert(id, values, absentMeansNull: true)
        } catch {
            throw Misfit.refusal(error, table: described.name, id: id)
        }
    }

    /// Returns whether the device had the record before. If so, the values kept aside may be only
    /// part of it. If the whole record arrived meanwhile, the device has deleted its revision, and
    /// this returns false.
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

/// The error for a record of the server that the app's new schema refuses.
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
    /// Returns whether the column holds its default in place of a value from the server: a null in
    /// a column that is NOT NULL and has a default.
    package func refuses(_ value: Value) -> Bool {
        value == .null && isRequired && hasDefault
    }
}
