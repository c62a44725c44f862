internal import CSQLite

/// What holds for SQLite in the whole process.
public enum SQLiteProcess {
    /// Has SQLite not count the memory it holds. The count is kept under a lock that all connections
    /// share, at each allocation.
    ///
    /// For programs in which nobody else uses SQLite: what asks for the count, or limits memory by it,
    /// finds nothing from then on.
    /// - Returns: Whether it was in time: before anything of SQLite was used.
    @discardableResult
    public static func countNoMemory() -> Bool {
        csqlite_count_no_memory() == SQLITE_OK
    }
}
