internal import SQLiteRecords

/// A piece of SQL: its text with `?` in place of values, the values, and the names of columns.
///
/// Values are never part of the text. Before the text runs, its columns are checked against the
/// schema, and they get their table's name if the statement has several tables.
public struct SQLFragment: Hashable, Sendable {
    private(set) var parts: [Part]

    enum Part: Hashable, Sendable {
        case text(String)
        /// The caller's own SQL, with its values.
        case raw(String, [SQLValue])
        case column(ColumnName)
        case binding(Binding)
        case query(Subquery)
    }

    /// The content of one `?`.
    struct Binding: Hashable, Sendable {
        var content: Content
        /// The column that the value is compared with or assigned to. It shows whether the value is
        /// a record's id.
        var column: ColumnName?

        enum Content: Hashable, Sendable {
            case value(SQLValue)
            /// A list that is bound as one JSON text.
            case list([SQLValue])
        }
    }

    /// A query within the text, with its own tables.
    struct Subquery: Hashable, Sendable {
        let sources: [QuerySource]
        let fragment: SQLFragment
    }

    private init(_ part: Part) {
        parts = [part]
    }

    /// Creates a fragment from the caller's own SQL, with `?` in place of each value. Names in it
    /// are not checked. SQLite takes an unknown name in double quotes for a text.
    public init(sql: String, arguments: [SQLValue] = []) {
        parts = arguments.isEmpty ? [.text(sql)] : [.raw(sql, arguments)]
    }

    /// Creates a fragment for a column.
    init(column: ColumnName) {
        self.init(.column(column))
    }

    /// Creates a fragment for a bound value.
    /// - Parameter column: The column that the value is compared with or assigned to; nil if there
    ///   is none.
    init(value: SQLValue, for column: ColumnName? = nil) {
        self.init(.binding(Binding(content: .value(value), column: column)))
    }

    /// Creates a fragment for a list that is bound as one JSON text.
    init(list: [SQLValue], for column: ColumnName?) {
        self.init(.binding(Binding(content: .list(list), column: column)))
    }

    /// Returns this text as a query within another one, with its own tables.
    func enclosed(over sources: [QuerySource]) -> SQLFragment {
        SQLFragment(.query(Subquery(sources: sources, fragment: self)))
    }

    /// Returns a quoted name that is no column of a table, such as the name of a result.
    static func quotedName(_ name: String) -> SQLFragment {
        SQLFragment(sql: SQLName.quoted(name))
    }

    /// The column, if the fragment is only a column.
    var onlyColumn: ColumnName? {
        guard parts.count == 1, case .column(let column) = parts[0] else { return nil }
        return column
    }
}

// MARK: - Reading it

extension SQLFragment {
    /// The text. When the statement runs and has several tables, each column gets its table's name.
    public var sql: String {
        parts.map { part in
            switch part {
            case .text(let text), .raw(let text, _): text
            case .column(let column): column.sql
            case .binding: "?"
            case .query(let query): query.fragment.sql
            }
        }.joined()
    }

    /// The values, one for each `?`.
    public var arguments: [SQLValue] {
        parts.flatMap { part in
            switch part {
            case .text, .column: [SQLValue]()
            case .raw(_, let values): values
            case .binding(let binding): [binding.value]
            case .query(let query): query.fragment.arguments
            }
        }
    }
}

// MARK: - Joining

extension SQLFragment {
    static func + (left: SQLFragment, right: SQLFragment) -> SQLFragment {
        var sum = left
        sum += right
        return sum
    }

    static func + (left: SQLFragment, right: String) -> SQLFragment {
        var sum = left
        sum += right
        return sum
    }

    static func + (left: String, right: SQLFragment) -> SQLFragment {
        SQLFragment(sql: left) + right
    }

    static func += (sum: inout SQLFragment, right: SQLFragment) {
        sum.parts += right.parts
    }

    static func += (sum: inout SQLFragment, right: String) {
        if case .text(let text)? = sum.parts.last {
            sum.parts[sum.parts.count - 1] = .text(text + right)
        } else {
            sum.parts.append(.text(right))
        }
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

extension ColumnName {
    /// The name as SQL.
    var sql: String {
        let name = SQLName.quoted(name)
        return table.map { SQLName.quoted($0) + "." + name } ?? name
    }
}

extension SQLFragment.Binding {
    /// The value that is bound.
    var value: SQLValue {
        switch content {
        case .value(let value): value
        case .list(let values): .text(JSONList.text(values))
        }
    }
}
