internal import SQLiteRecords

/// A piece of SQL: text in which values stand as `?`, the values, and the columns it names.
///
/// Values never enter the text. Columns are checked against the table before the text is used.
public struct SQLFragment: Hashable, Sendable {
    /// The text.
    public private(set) var sql: String
    /// One value for each `?`.
    public private(set) var arguments: [SQLValue]
    /// Columns named, to be checked against the schema.
    private(set) var columns: Set<String>

    /// SQL of one's own, with `?` in place of each value.
    public init(sql: String, arguments: [SQLValue] = []) {
        self.sql = sql
        self.arguments = arguments
        columns = []
    }

    /// A column's name.
    init(column: String) {
        sql = SQLName.quoted(column)
        arguments = []
        columns = [column]
    }

    /// A bound value.
    init(value: SQLValue) {
        sql = "?"
        arguments = [value]
        columns = []
    }

    static func + (left: SQLFragment, right: SQLFragment) -> SQLFragment {
        var sum = left
        sum.sql += right.sql
        sum.arguments += right.arguments
        sum.columns.formUnion(right.columns)
        return sum
    }

    static func + (left: SQLFragment, right: String) -> SQLFragment {
        var sum = left
        sum.sql += right
        return sum
    }

    /// - Throws: `StoreError` `.unknown` for a column the table does not have.
    func check(against table: TableDescription) throws {
        for column in columns where table.column(column) == nil && column != "rowid" {
            throw StoreError(
                .unknown,
                "The table “\(table.name)” has no column “\(column)”; it has"
                    + " \(table.columns.map(\.name).joined(separator: ", ")).")
        }
    }
}
