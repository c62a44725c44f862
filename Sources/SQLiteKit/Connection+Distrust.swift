internal import CSQLite

extension Connection {
    /// Makes the connection fit to look into a file a stranger made: triggers and views of the file
    /// do nothing, its expressions call nothing that has effects, and cells are checked as pages
    /// are read (https://sqlite.org/security.html).
    public func distrustSchema() throws(SQLiteError) {
        let code = csqlite_distrust(handle.pointer)
        guard code == SQLITE_OK else { throw handle.error(code, sql: nil) }
        try execute("PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0")
    }

    /// Lets triggers do something on this connection, or nothing; at first they do. Statements are
    /// compiled anew where that changes.
    public func setTriggers(enabled: Bool) throws(SQLiteError) {
        let code = csqlite_enable_triggers(handle.pointer, enabled ? 1 : 0)
        guard code == SQLITE_OK else { throw handle.error(code, sql: nil) }
    }
}
