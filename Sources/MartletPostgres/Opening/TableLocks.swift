import PostgresKit

/// Locks of other transactions on whole synchronised tables (ALTER TABLE, LOCK TABLE, TRUNCATE, CREATE INDEX).
enum TableLocks {
    /// The query for locks. A statement that writes to a table waits for each of these modes, even
    /// to be prepared. A program that waits for such a lock also makes all later ones wait.
    private static let sql = """
        SELECT DISTINCT t.name FROM pg_catalog.pg_locks AS l \
        JOIN _martlet.types AS t ON t.relation::oid = l.relation \
        WHERE l.locktype = 'relation' AND l.mode IN ('AccessExclusiveLock', 'ExclusiveLock', \
        'ShareRowExclusiveLock', 'ShareLock') \
        AND l.pid <> pg_backend_pid() AND l.database = \
        (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database()) ORDER BY 1
        """

    /// Returns the names of the types whose tables are locked.
    static func read(_ connection: PostgresConnection) throws(PostgresError) -> [String] {
        let rows = try connection.query(sql)
        var names: [String] = []
        for row in 0..<rows.count { names.append(try rows.text(row, 0)) }
        return names
    }
}
