internal import MartletModel
internal import SQLiteKit
internal import SQLiteRecords

/// Finds the reason why a unique index cannot be created.
enum UniqueViolation {
    /// Returns the refusal of an index that existing rows violate, with the key of one of them.
    static func refusal(
        of statement: CreateStatement, _ error: SQLiteError, on connection: Connection
    ) -> StoreError {
        let table = statement.table ?? ""
        let key = try? offender(statement, on: connection)
        var refusal = StoreError(
            .constraint,
            "Unique index “\(statement.name)” cannot be made: two records of “\(table)” have the"
                + " same values\(key.map { ", one of them with the key \($0)" } ?? ""). Change or"
                + " delete one of each such pair first.")
        refusal.code = error.extendedCode
        refusal.table = table
        refusal.key = key
        return refusal
    }

    /// Returns the key of a row whose values another row has too; nil if it cannot be found.
    private static func offender(
        _ statement: CreateStatement, on connection: Connection
    ) throws -> RecordID? {
        guard let table = statement.table, !statement.items.isEmpty else { return nil }
        let find = try connection.prepare("SELECT name FROM pragma_table_info(?1) WHERE pk = 1")
        find.bind(1, text: table)
        let keys = try find.rows { (row) throws(SQLiteError) in row.text(0) }
        let key = keys.first.map { SQLName.quoted($0) } ?? "rowid"
        // Nulls are equal in a group, but not in an index.
        let conditions =
            (statement.condition.map { [$0] } ?? [])
            + statement.items.map { "\($0) IS NOT NULL" }
        let rows = try connection.prepare(
            """
            SELECT max(\(key)) FROM \(SQLName.quoted(table))
            WHERE \(conditions.map { "(\($0))" }.joined(separator: " AND "))
            GROUP BY \(statement.items.joined(separator: ", ")) HAVING count(*) > 1 LIMIT 1
            """)
        defer { rows.reset() }
        return try rows.step() && !rows.isNull(0) ? rows.recordID(0) : nil
    }
}
