internal import SQLiteKit
internal import SQLiteRecords

/// Creates temporary copies of the app's triggers for the connection that applies remote change.
/// The copies do only part of the work of the app's triggers.
///
/// If a trigger wrote to synchronised tables, these writes were captured with the edit, and arrive
/// with it. Repeating them would make this replica differ from all others. But a virtual table,
/// such as a full-text index, belongs to this file alone, and so its triggers have to run for
/// remote change as well. Statements that only read run too, but none may refuse a row: a RAISE is
/// meant for an action of a person, and these writes are none. They apply a change that the server
/// has accepted, or undo an own edit, redo it, or give it its permanent id, by deleting and
/// inserting rows.
struct RemoteTriggers {
    let connection: Connection

    private static let prefix = "martlet_remote_"

    /// Creates the temporary triggers that fit the app's present triggers. The file's own triggers
    /// must be off on this connection.
    func bring() throws(SQLiteError) {
        try remove()
        for (number, sql) in try copies().enumerated() {
            let trigger = "\(Self.prefix)\(number)"
            try connection.execute("CREATE TEMP TRIGGER \(trigger) \(sql)")
        }
    }

    /// Runs `body`, which writes rows that the server knows. On a connection that otherwise runs
    /// the file's own triggers, these triggers replace them meanwhile.
    /// - Throws: Errors of `body`. The caller rolls back.
    func runAlone(_ body: () throws -> Void) throws {
        try connection.setTriggers(enabled: false)
        do {
            try bring()
            try body()
            try remove()
        } catch {
            try connection.setTriggers(enabled: true)
            throw error
        }
        try connection.setTriggers(enabled: true)
    }

    func remove() throws(SQLiteError) {
        for name in try names() {
            try connection.execute("DROP TRIGGER temp.\(SQLName.quoted(name))")
        }
    }

    /// The number of temporary triggers. A rollback removes those that its transaction made.
    var count: Int {
        get throws(SQLiteError) { try names().count }
    }

    private func names() throws(SQLiteError) -> [String] {
        try connection.statement(
            "SELECT name FROM temp.sqlite_schema WHERE type = 'trigger' AND name GLOB '\(Self.prefix)*'"
        ).rows { (row) throws(SQLiteError) in row.text(0) }
    }

    private func copies() throws(SQLiteError) -> [String] {
        let triggers = try connection.statement(
            "SELECT sql FROM main.sqlite_schema"
                + " WHERE type = 'trigger' AND name NOT GLOB 'martlet_capture_*' ORDER BY rowid"
        ).rows { (row) throws(SQLiteError) in row.text(0) }
        guard !triggers.isEmpty else { return [] }
        let virtual = try connection.statement(
            "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'virtual'"
        ).rows { (row) throws(SQLiteError) in SQLName.folded(row.text(0)) }
        return triggers.compactMap {
            TriggerDeclaration($0)?.copy { virtual.contains(SQLName.folded($0)) }
        }
    }
}
