internal import CSQLite

/// Settings of SQLite for the whole process.
public enum SQLiteProcess {
    /// Stops SQLite from counting the memory that it holds. SQLite keeps the count under a lock
    /// that all connections share, at each allocation.
    ///
    /// Call it only if no other part of the program uses SQLite. Code that asks for the count, or
    /// limits memory by it, finds nothing from then on.
    /// - Returns: Whether the call was in time, which is before any other use of SQLite.
    @discardableResult
    public static func countNoMemory() -> Bool {
        csqlite_count_no_memory() == SQLITE_OK
    }
}
