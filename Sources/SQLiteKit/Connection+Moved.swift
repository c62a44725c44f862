internal import CSQLite

extension Connection {
    /// Whether the open file is no longer the one at its path: it was removed, moved, or replaced
    /// by another. False for a database without a file.
    ///
    /// In rollback journal mode SQLite refuses to write to such a file (SQLITE_READONLY_DBMOVED);
    /// in WAL mode it does not (https://sqlite.org/c3ref/c_fcntl_begin_atomic_write.html).
    public var hasMoved: Bool {
        var moved: Int32 = 0
        let code = sqlite3_file_control(handle.pointer, "main", SQLITE_FCNTL_HAS_MOVED, &moved)
        return code == SQLITE_OK && moved != 0
    }
}
