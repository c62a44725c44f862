internal import SQLiteRecords

/// A piece of SQL: text in which values stand as `?`, the values, and the columns it names.
///
/// Values never enter the text. Columns are checked against the schema before the text is used,
/// and get their table's name where the statement has several tables.
public struct SQLFragment: Hashable, Sendable {
    private(set) var parts: [Part]

    enum Part: Hashable, Sendable {
        case text(String)
        /// SQL of the caller's own, with its values.
        case raw(String, [SQLValue])
        case column(ColumnName)
        case binding(Binding)
        case query(Subquery)
    }

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

    /// A query within the text, which has tables of its own.
    struct Subquery: Hashable, Sendable {
        let sources: [QuerySource]
        let fragment: SQLFragment
    }

    private init(_ part: Part) {
        parts = [part]
    }

    /// SQL of one's own, with `?` in place of each value. Names in it are not checked, and SQLite
    /// takes an unknown name in double quotes for a text.
    public init(sql: String, arguments: [SQLValue] = []) {
        parts = arguments.isEmpty ? [.text(sql)] : [.raw(sql, arguments)]
    }

    /// A column.
    init(column: ColumnName) {
        self.init(.column(column))
    }

    /// A bound value.
    /// - Parameter column: The column it is compared with or given to, where there is one.
    init(value: SQLValue, for column: ColumnName? = nil) {
        self.init(.binding(Binding(content: .value(value), column: column)))
    }

    /// A list bound as one JSON text.
    init(list: [SQLValue], for column: ColumnName?) {
        self.init(.binding(Binding(content: .list(list), column: column)))
    }

    /// The same text as a query within another, over tables of its own.
    func enclosed(over sources: [QuerySource]) -> SQLFragment {
        SQLFragment(.query(Subquery(sources: sources, fragment: self)))
    }

    /// A name that is none of a column's, such as that of a result.
    static func quotedName(_ name: String) -> SQLFragment {
        SQLFragment(sql: SQLName.quoted(name))
    }

    /// The column, where the fragment is nothing else.
    var onlyColumn: ColumnName? {
        guard parts.count == 1, case .column(let column) = parts[0] else { return nil }
        return column
    }
}

// MARK: - Reading it

extension SQLFragment {
    /// The text. When it is run, columns have their table's name before them where the statement
    /// has several tables.
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

    /// One value for each `?`.
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
    /// What SQLite is given.
    var value: SQLValue {
        switch content {
        case .value(let value): value
        case .list(let values): .text(JSONList.text(values))
        }
    }
}
