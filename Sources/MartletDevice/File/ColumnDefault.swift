internal import MartletModel
internal import SQLiteKit
internal import SQLiteRecords

/// The value that a column added to a table gives its existing rows.
enum ColumnDefault {
    /// Returns the default as the column holds it; null if it is not a constant, which SQLite
    /// allows only for columns of empty tables.
    static func value(
        of column: Attribute, table: String, _ connection: Connection
    ) throws -> Value {
        let find = try connection.prepare(
            "SELECT type, dflt_value FROM pragma_table_info(?1, 'main') WHERE name = ?2")
        find.bind(1, text: table)
        find.bind(2, text: column.name)
        defer { find.reset() }
        guard try find.step(), !find.isNull(1) else { return .null }
        // This uses a scratch table: the table itself may be empty, and the rules of other columns
        // would refuse a row of defaults.
        let scratch = try Connection(path: ":memory:")
        try scratch.execute("CREATE TABLE t(k INTEGER PRIMARY KEY); INSERT INTO t VALUES (1)")
        let sql = find.text(1)
        // A name alone is a text.
        let isAlone = SQLToken.tokens(of: Array(sql.utf8)).count == 1
        do {
            try scratch.execute(
                "ALTER TABLE t ADD COLUMN v \(find.text(0)) DEFAULT \(isAlone ? sql : "(\(sql)\n)")"
            )
        } catch {
            guard error.isStatementError else { throw error }
            return .null
        }
        let read = try scratch.prepare("SELECT v FROM t")
        defer { read.reset() }
        guard try read.step() else { return .null }
        return try read.value(0, kind: column.kind)
    }
}
