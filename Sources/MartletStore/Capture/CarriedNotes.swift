internal import MartletCore
package import MartletProtocol
internal import SQLiteKit
internal import SQLiteRecords

/// The notes of a table that another program renamed, and gave its earlier name back.
///
/// Capture's triggers go with a table that is renamed. A look makes the table a type of its own, and its triggers
/// note under that type's number. Once the table has its earlier name again, what they noted since is about the
/// records of the earlier type.
struct CarriedNotes {
    let store: LocalStore

    static let prefix = "carried:"

    /// Gives each table the notes that its triggers made under another name of it.
    ///
    /// What was noted before the table got the other name stays: it waits for the table.
    func follow() throws {
        let recorded = try NotedColumns(connection: store.connection).recorded()
        func columns(_ number: Int64) -> [String]? {
            recorded.present[number] ?? recorded.away[number]
        }
        for (number, table) in try carried() {
            let origin = try earlier(number)
            guard let type = store.schema.types.firstIndex(where: { $0.name == table }) else {
                continue
            }
            let present = store.numbers[type]
            let before = try earlier(present)
            if columns(present) == nil || origin == nil && before != nil {
                try store.setState("\(Self.prefix)\(present)", .integer(origin ?? number))
                continue
            }
            // Columns that were added meanwhile stand last.
            guard let origin, present == origin || before == origin, let known = columns(present),
                columns(number)?.starts(with: known) ?? false
            else { continue }
            try store.connection.execute(
                "UPDATE martlet_capture SET type = \(present) WHERE type = \(number)")
        }
    }

    /// The tables whose triggers note under the number of another type: that number, and the table's name.
    private func carried() throws -> [(number: Int64, table: String)] {
        let start = "martlet_capture_delete_"
        let rows = try store.connection.prepare(
            "SELECT name, tbl_name FROM main.sqlite_schema WHERE type = 'trigger' AND name GLOB '\(start)*'"
        )
        return try rows.rows { (row) throws(SQLiteError) -> (number: Int64, table: String)? in
            Int64(row.text(0).dropFirst(start.count)).map { (number: $0, table: row.text(1)) }
        }.compactMap(\.self).filter { number, table in
            store.schema.types.firstIndex { $0.name == table }.map { store.numbers[$0] } != number
        }
    }

    /// The number of the type that a type's table was when it was renamed; nil if the type began in another way.
    private func earlier(_ number: Int64) throws -> Int64? {
        try store.integerState("\(Self.prefix)\(number)")
    }
}

extension LocalStore {
    /// The new records of tables that the file does not have under the name that they had when this was noted, by
    /// the type's number. Rows that refer to one may name it by the number of the type that the table is now.
    package func newRecordsAway() throws -> [(type: Int64, id: RecordID)] {
        let rows = try connection.statement(
            """
            SELECT coalesce(now.number, note.type), note.id FROM (
                SELECT type, id FROM martlet_capture
                WHERE type NOT IN (\(numberList)) AND operation = \(CaptureTriggers.Operation.inserted)
            ) AS note LEFT JOIN (
                SELECT CAST(substr(name, \(CarriedNotes.prefix.count + 1)) AS INTEGER) AS number, value
                FROM martlet_state WHERE name GLOB '\(CarriedNotes.prefix)*'
            ) AS now ON now.value = note.type
            """)
        defer { rows.reset() }
        var records: [(type: Int64, id: RecordID)] = []
        while try rows.step() {
            if let id = try? rows.recordID(1) { records.append((rows.integer(0), id)) }
        }
        return records
    }
}
