internal import SQLiteRecords

/// A piece of SQL: text in which values stand as `?`, the values, and the columns it names.
///
/// Values never enter the text. Columns are checked against the schema before the text is used.
public struct SQLFragment: Hashable, Sendable {
    /// The text.
    public private(set) var sql: String
    /// What is bound to each `?`.
    private(set) var bindings: [Binding]
    /// Columns named outside of `subqueries`, to be checked against the schema.
    private(set) var columns: Set<ColumnName>
    /// Queries within the text, which have tables of their own.
    private(set) var subqueries: [Subquery] = []

    /// What is bound to one `?`.
    struct Binding: Hashable, Sendable {
        var content: Content
        /// The column it is compared with or given to, which may say that it is a record's id.
        var column: ColumnName?

        enum Content: Hashable, Sendable {
            case value(SQLValue)
            /// A list, bound as one JSON text.
            case list([SQLValue])
        }
    }

    /// A query within the text.
    struct Subquery: Hashable, Sendable {
        let sources: [QuerySource]
        let columns: Set<ColumnName>
        let subqueries: [Subquery]
    }

    /// SQL of one's own, with `?` in place of each value. Names in it are not checked, and SQLite
    /// takes an unknown name in double quotes for a text.
    public init(sql: String, arguments: [SQLValue] = []) {
        self.sql = sql
        bindings = arguments.map { Binding(content: .value($0)) }
        columns = []
    }

    /// One value for each `?`.
    public var arguments: [SQLValue] { bindings.map(\.value) }

    /// A column.
    init(column: ColumnName) {
        let name = SQLName.quoted(column.name)
        sql = column.table.map { SQLName.quoted($0) + "." + name } ?? name
        bindings = []
        columns = [column]
    }

    /// A bound value.
    /// - Parameter column: The column it is compared with or given to, where there is one.
    init(value: SQLValue, for column: ColumnName? = nil) {
        sql = "?"
        bindings = [Binding(content: .value(value), column: column)]
        columns = []
    }

    /// A list bound as one JSON text.
    init(list: [SQLValue], for column: ColumnName?) {
        sql = "?"
        bindings = [Binding(content: .list(list), column: column)]
        columns = []
    }

    /// The same text as a query within another, over tables of its own.
    func enclosed(over sources: [QuerySource]) -> SQLFragment {
        var whole = SQLFragment(sql: sql)
        whole.bindings = bindings
        whole.subqueries = [Subquery(sources: sources, columns: columns, subqueries: subqueries)]
        return whole
    }

    /// A name that is none of a column's, such as that of a result.
    static func quotedName(_ name: String) -> SQLFragment {
        SQLFragment(sql: SQLName.quoted(name))
    }

    static func + (left: SQLFragment, right: SQLFragment) -> SQLFragment {
        var sum = left
        sum += right
        return sum
    }

    static func + (left: SQLFragment, right: String) -> SQLFragment {
        var sum = left
        sum.sql += right
        return sum
    }

    static func + (left: String, right: SQLFragment) -> SQLFragment {
        var sum = right
        sum.sql = left + right.sql
        return sum
    }

    static func += (sum: inout SQLFragment, right: SQLFragment) {
        sum.sql += right.sql
        sum.bindings += right.bindings
        sum.columns.formUnion(right.columns)
        sum.subqueries += right.subqueries
    }

    static func += (sum: inout SQLFragment, right: String) {
        sum.sql += right
    }
}

extension [SQLFragment] {
    func joined(separator: String) -> SQLFragment {
        var sum = SQLFragment(sql: "")
        for (index, fragment) in enumerated() {
            if index > 0 { sum += separator }
            sum += fragment
        }
        return sum
    }
}

extension SQLFragment.Binding {
    /// What SQLite is given.
    var value: SQLValue {
        switch content {
        case .value(let value): value
        case .list(let values): .text(JSONList.text(values))
        }
    }
}
