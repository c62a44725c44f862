/// What rows are ordered by.
public struct Ordering: Hashable, Sendable {
    /// The order as SQL.
    public let fragment: SQLFragment

    init(_ fragment: SQLFragment) {
        self.fragment = fragment
    }

    /// An order of one's own, with `?` in place of each value. Names in it are not checked.
    public init(sql: String, arguments: [SQLValue] = []) {
        fragment = SQLFragment(sql: sql, arguments: arguments)
    }

    /// The same with nulls before everything else.
    public var nullsFirst: Ordering { Ordering(fragment + " NULLS FIRST") }
    /// The same with nulls after everything else.
    public var nullsLast: Ordering { Ordering(fragment + " NULLS LAST") }
}

extension ColumnExpression {
    /// From the smallest to the largest; nulls come first.
    public var ascending: Ordering { Ordering(fragment) }
    /// From the largest to the smallest; nulls come last.
    public var descending: Ordering { Ordering(fragment + " DESC") }
}
