/// What a row must meet.
public struct Condition: Hashable, Sendable {
    /// The condition as SQL.
    public let fragment: SQLFragment

    /// A condition of one's own, with `?` in place of each value.
    public init(sql: String, arguments: [SQLValue] = []) {
        fragment = SQLFragment(sql: "(\(sql))", arguments: arguments)
    }

    init(_ fragment: SQLFragment) {
        self.fragment = fragment
    }
}

extension Column {
    var fragment: SQLFragment { SQLFragment(column: name) }

    /// Equal; null equals null.
    public static func == (column: Column, value: Value) -> Condition {
        Condition(column.fragment + " IS " + SQLFragment(value: value.sqlValue))
    }
}
