import MartletModel
import MartletServerCore
import SQLiteKit
import SQLiteRecords

/// Notes every row that any statement writes, for schemas in which rows change behind the
/// statements.
///
/// TEMP triggers belong to this connection only and leave no trace in the file. A schema without
/// triggers of its own, whose foreign keys are all `Reference`s, needs no capture, because the
/// facts have the effects of its ON DELETE actions.
struct RowCapture {
    private let connection: Connection

    /// Creates the triggers; nil if nothing happens behind the statements.
    init?(connection: Connection, schema: Schema) throws(SQLiteError) {
        guard try Self.isNeeded(connection, schema) else { return nil }
        self.connection = connection
        try connection.execute(
            """
            CREATE TEMP TABLE IF NOT EXISTS martlet_written (type INTEGER, id)
            """)
        for (position, type) in schema.types.enumerated() {
            let table = SQLName.quoted(type.name)
            let key = SQLName.quoted(type.key)
            func trigger(_ event: String, _ rows: [String]) -> String {
                let notes = rows.map { row in
                    """
                    INSERT INTO martlet_written VALUES (\(position), \(row).\(key));
                    """
                }
                return """
                    CREATE TEMP TRIGGER IF NOT EXISTS martlet_\(event)_\(position) \
                    AFTER \(event) ON main.\(table) BEGIN \(notes.joined(separator: " ")) END;
                    """
            }
            try connection.execute(
                trigger("INSERT", ["NEW"]) + trigger("UPDATE", ["OLD", "NEW"])
                    + trigger("DELETE", ["OLD"]))
        }
    }

    /// Forgets the rows written so far.
    func start() throws(SQLiteError) {
        try connection.run("DELETE FROM martlet_written")
    }

    /// Returns the rows written since `start`.
    func changedRows() throws(SQLiteError) -> [RecordAddress] {
        let statement = try connection.statement(
            """
            SELECT DISTINCT type, id FROM martlet_written WHERE id IS NOT NULL ORDER BY type, id
            """)
        let found = try statement.rows { (row) throws(SQLiteError) -> RecordAddress? in
            do throws(SQLiteError) {
                return RecordAddress(Int(row.integer(0)), try row.recordID(1))
            } catch {
                // A key that is neither an integer nor text belongs to no record.
                guard error.isMismatch else { throw error }
                return nil
            }
        }
        return found.compactMap(\.self)
    }

    private static func isNeeded(
        _ connection: Connection, _ schema: Schema
    ) throws(SQLiteError) -> Bool {
        let triggers = try connection.integer(
            """
            SELECT count(*) FROM main.sqlite_schema WHERE type = 'trigger' \
            AND name NOT LIKE 'martlet\\_%' ESCAPE '\\'
            """)
        if triggers != 0 { return true }
        for type in schema.types {
            let statement = try connection.statement(
                """
                SELECT "from", on_update, on_delete, count(*) OVER (PARTITION BY id) \
                FROM pragma_foreign_key_list(?1, 'main')
                """)
            statement.bind(1, text: type.name)
            let actions = try statement.rows { (row) throws(SQLiteError) in
                let quiet = ["NO ACTION", "RESTRICT"]
                let isSimple = row.integer(3) == 1
                let isKnown =
                    isSimple
                    && type.references.contains {
                        $0.attribute.lowercased() == row.text(0).lowercased()
                    }
                let isQuiet = quiet.contains(row.text(1)) && quiet.contains(row.text(2))
                // Permanent keys never change, so ON UPDATE acts on other unique columns only.
                return isQuiet || isKnown
            }
            if actions.contains(false) { return true }
        }
        return false
    }
}
