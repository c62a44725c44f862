internal import SQLiteKit
internal import SQLiteRecords

/// Makes temporary copies of the app's triggers for the connection that applies remote change. They
/// do only part of what the app's triggers do.
///
/// What a trigger writes to synchronised tables was captured where the edit was made, and comes with
/// it; done once more, it would make this replica differ from all others. What a trigger writes to a
/// virtual table, such as a full-text index, is this file's own, and has to be done for remote change
/// as well. Statements that only read run too, but none may refuse a row: a RAISE judges the step that a
/// person takes, and what is written here is no step. It is what the server has accepted, or an own edit
/// taken back, made again, or given its permanent id, by deleting rows and putting them in.
struct RemoteTriggers {
    let connection: Connection

    private static let prefix = "martlet_remote_"

    /// Makes or removes temporary triggers until they fit the app's triggers. The file's own
    /// triggers must be off on this connection.
    func bring() throws(SQLiteError) {
        try remove()
        for (number, sql) in try copies().enumerated() {
            let trigger = "\(Self.prefix)\(number)"
            try connection.execute("CREATE TEMP TRIGGER \(trigger) \(sql)")
        }
    }

    /// Runs `body`, which writes what the server knows, with these triggers in place of the file's own on a connection
    /// that runs those else.
    /// - Throws: What `body` throws. The caller rolls back.
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

    /// The number of temporary triggers. Those made in a transaction that was rolled back are gone.
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
