internal import CSQLite

extension Connection {
    /// Whether the file that is open is no longer the one under its path: it was removed, moved, or
    /// another was put in its place. False for a database without a file.
    ///
    /// SQLite refuses to write to such a file where it keeps a rollback journal (SQLITE_READONLY_DBMOVED),
    /// and not in WAL mode (https://sqlite.org/c3ref/c_fcntl_begin_atomic_write.html).
    public var hasMoved: Bool {
        var moved: Int32 = 0
        let code = sqlite3_file_control(handle.pointer, "main", SQLITE_FCNTL_HAS_MOVED, &moved)
        return code == SQLITE_OK && moved != 0
    }
}
