internal import CSQLite

extension Connection {
    /// Makes this connection's database a copy of another's, in one transaction: a crash leaves
    /// what was there before, or the copy (https://sqlite.org/backup.html).
    ///
    /// - Parameter other: A connection to another file, in no transaction of its own.
    /// - Throws: `SQLiteError`; the database is then as it was.
    public func copy(from other: Connection) throws(SQLiteError) {
        clearStatementCache()
        guard
            let backup = sqlite3_backup_init(
                handle.pointer, "main", other.handle.pointer, "main")
        else { throw handle.error(SQLITE_ERROR, sql: nil) }
        // All pages in one step: the source stays locked, and the copy is of one moment.
        let code = sqlite3_backup_step(backup, -1)
        let ended = sqlite3_backup_finish(backup)
        guard code == SQLITE_DONE, ended == SQLITE_OK else {
            throw handle.error(code == SQLITE_DONE ? ended : code, sql: nil)
        }
    }

    /// A number that changes when another connection, of any process, commits a change to the file
    /// (https://sqlite.org/pragma.html#pragma_data_version).
    public func dataVersion() throws(SQLiteError) -> Int64 {
        try integer("PRAGMA data_version") ?? 0
    }
}
