internal import CSQLite

extension Connection {
    /// Prepares the connection to read a file from an untrusted source. Triggers and views of the
    /// file do nothing, its expressions call no function with effects, and SQLite checks cells when
    /// it reads pages (https://sqlite.org/security.html).
    /// - Throws: `SQLiteError` if SQLite refuses a setting.
    public func distrustSchema() throws(SQLiteError) {
        let code = csqlite_distrust(handle.pointer)
        guard code == SQLITE_OK else { throw handle.error(code, sql: nil) }
        try execute("PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0")
    }

    /// Enables or disables triggers on this connection. At first they are enabled. A change makes
    /// SQLite recompile statements.
    /// - Throws: `SQLiteError` if SQLite refuses the setting.
    public func setTriggers(enabled: Bool) throws(SQLiteError) {
        let code = csqlite_enable_triggers(handle.pointer, enabled ? 1 : 0)
        guard code == SQLITE_OK else { throw handle.error(code, sql: nil) }
    }
}
