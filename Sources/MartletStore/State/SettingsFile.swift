internal import SQLiteKit

/// The SQLite file of `Settings`: names, and values as JSON. Every call blocks.
final class SettingsFile {
    /// The version of the tables below; a file with a higher number comes from a newer app.
    private static let version: Int64 = 1

    private let connection: Connection
    private var seenVersion: Int64 = 0

    init(path: String, busyTimeout: Duration) throws {
        let milliseconds = Int32(clamping: Int((busyTimeout / .milliseconds(1)).rounded()))
        connection = try Connection(path: path, busyTimeoutMilliseconds: milliseconds)
        try checkOwn()
        // A kill loses nothing. A power cut may undo the last settings, but never a part of one.
        try connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
        try connection.transaction {
            try connection.execute(
                """
                CREATE TABLE IF NOT EXISTS settings(
                    name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL
                ) WITHOUT ROWID;
                PRAGMA user_version = \(Self.version);
                """)
        }
        _ = try hasExternalWrites()
    }

    /// Refuses a file of another kind, before anything in it is changed.
    private func checkOwn() throws {
        let others = try connection.integer(
            "SELECT count(*) FROM sqlite_schema WHERE tbl_name <> 'settings'")
        guard others == 0 else {
            throw StoreError(
                .file,
                "Settings need a file of their own, and this one has other tables. Use"
                    + " another path.")
        }
        let columns = try connection.text(
            "SELECT group_concat(name) FROM pragma_table_info('settings')")
        guard columns == nil || columns == "name,value" else {
            throw StoreError(
                .file,
                "The table settings should have the columns name and value, and has others. Use"
                    + " another path.")
        }
        guard try connection.integer("PRAGMA user_version") ?? 0 <= Self.version else {
            throw StoreError(
                .newer, "The settings were written by a newer version of the app. Update the app.")
        }
    }

    /// Returns the JSON of a setting; nil if it is not set.
    func json(_ name: String) throws -> String? {
        let statement = try connection.statement("SELECT value FROM settings WHERE name = ?")
        defer { statement.reset() }
        statement.bind(1, text: name)
        guard try statement.step() else { return nil }
        guard statement.storage(0) == .text, let json = statement.validatedText(0) else {
            throw StoreError(
                .value,
                "The setting “\(name)” should hold text in UTF-8, and holds something else. Set or"
                    + " remove it.")
        }
        return json
    }

    func set(_ name: String, to json: String) throws {
        let statement = try connection.statement(
            """
            INSERT INTO settings(name, value) VALUES (?, ?)
            ON CONFLICT(name) DO UPDATE SET value = excluded.value
            """)
        defer { statement.reset() }
        statement.bind(1, text: name)
        statement.bind(2, text: json)
        try statement.run()
    }

    func remove(_ name: String) throws {
        let statement = try connection.statement("DELETE FROM settings WHERE name = ?")
        defer { statement.reset() }
        statement.bind(1, text: name)
        try statement.run()
    }

    /// Runs `body` while no other connection can write.
    func exclusively<Result>(_ body: () throws -> Result) throws -> Result {
        try connection.transaction(body)
    }

    func names() throws -> [String] {
        try connection.statement("SELECT name FROM settings ORDER BY name").rows { $0.text(0) }
    }

    /// Returns whether another connection has written since the last call.
    func hasExternalWrites() throws -> Bool {
        let version = try connection.integer("PRAGMA data_version") ?? 0
        defer { seenVersion = version }
        return version != seenVersion
    }
}
