internal import MartletCore
internal import MartletProtocol
internal import SQLiteKit
internal import SQLiteRecords

/// Fills a new table with the records of its type that came before it: they were kept aside.
///
/// Capture is down: these are the server's records, not edits.
struct NewTable {
    let store: LocalStore
    /// The type's position.
    let type: Int

    /// - Throws: `StoreError` `.constraint` for a record that the table refuses.
    func settle() throws {
        let described = store.schema.types[type]
        let stored = StoredAttributes(connection: store.connection)
        let remember = try store.connection.prepare(
            "INSERT OR REPLACE INTO martlet_records(type, id, revision) VALUES (?, ?, ?)")
        try stored.rewriteAside(of: described.name) { id, revision, attributes in
            var known = Attributes()
            for (name, value) in zip(attributes.names, attributes.values) {
                guard let attribute = described[attribute: name] else { continue }
                attributes[name] = nil
                if !attribute.isGenerated, !attribute.refuses(value) { known[name] = value }
            }
            do {
                try store.tables[type].insert(id, known, absentMeansNull: true)
            } catch {
                throw Misfit.refusal(error, table: described.name, id: id)
            }
            remember.bind(1, integer: store.numbers[type])
            remember.bind(2, id)
            remember.bind(3, integer: revision)
            try remember.run()
            remember.reset()
            return true
        }
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
