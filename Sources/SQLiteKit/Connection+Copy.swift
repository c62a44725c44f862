internal import CSQLite

extension Connection {
    /// Replaces this connection's database with a copy of another one, in one transaction. After a
    /// crash the file has the previous content or the copy (https://sqlite.org/backup.html).
    ///
    /// - Parameter other: A connection to another file, without an open transaction.
    /// - Throws: `SQLiteError`; the database is then unchanged.
    /// - Complexity: O(*n*) in the pages of the other database.
    public func copy(from other: Connection) throws(SQLiteError) {
        clearStatementCache()
        guard
            let backup = sqlite3_backup_init(
                handle.pointer, "main", other.handle.pointer, "main")
        else { throw handle.error(SQLITE_ERROR, sql: nil) }
        // One step copies all pages. The source stays locked meanwhile, so the copy is of one
        // moment.
        let code = sqlite3_backup_step(backup, -1)
        let ended = sqlite3_backup_finish(backup)
        guard code == SQLITE_DONE, ended == SQLITE_OK else {
            throw handle.error(code == SQLITE_DONE ? ended : code, sql: nil)
        }
    }

    /// Returns a number that changes when another connection, of any process, commits a change to
    /// the file (https://sqlite.org/pragma.html#pragma_data_version).
    /// - Throws: `SQLiteError` if the file cannot be read.
    public func dataVersion() throws(SQLiteError) -> Int64 {
        try integer("PRAGMA data_version") ?? 0
    }
}
