package import SQLiteKit

/// The record of the versions that a file has been through.
package struct MigrationLedger {
    let connection: Connection

    package init(connection: Connection) {
        self.connection = connection
    }

    private var exists: Bool {
        get throws(SQLiteError) {
            try connection.integer(
                "SELECT 1 FROM main.sqlite_schema WHERE type = 'table'"
                    + " AND name = 'martlet_migrations'") != nil
        }
    }

    /// Returns the versions run so far; empty for a file without any.
    /// - Throws: `SQLiteError` if the file cannot be read.
    package func versions() throws(SQLiteError) -> Set<Int> {
        guard try exists else { return [] }
        let rows = try connection.statement("SELECT version FROM martlet_migrations")
        return Set(try rows.rows { (row) throws(SQLiteError) in Int(row.integer(0)) })
    }

    private func clock() throws(SQLiteError) -> Int64 {
        try connection.integer(
            "SELECT CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)") ?? 0
    }

    /// Records a version, in that version's transaction.
    /// - Parameter now: The time in milliseconds since 1970; nil uses the clock of the file's VFS.
    /// - Throws: `SQLiteError` if the file cannot be written.
    package func record(_ migration: Migration, now: Int64?) throws(SQLiteError) {
        try connection.execute(
            """
            CREATE TABLE IF NOT EXISTS martlet_migrations(
                version INTEGER PRIMARY KEY, name TEXT NOT NULL, at INTEGER NOT NULL)
            """)
        let insert = try connection.prepare("INSERT INTO martlet_migrations VALUES (?, ?, ?)")
        insert.bind(1, integer: Int64(migration.version))
        insert.bind(2, text: migration.name)
        let time: Int64
        if let now { time = now } else { time = try clock() }
        insert.bind(3, integer: time)
        try insert.run()
    }
}
