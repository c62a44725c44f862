/// An order of rows.
///
/// ```swift
/// let tallest = try players.query()
///     .ordered(by: players.height.descending.nullsLast, players.name.ascending)
///     .fetch(in: context)
/// ```
public struct Ordering: Hashable, Sendable {
    /// The order as SQL.
    public let fragment: SQLFragment

    init(_ fragment: SQLFragment) {
        self.fragment = fragment
    }

    /// Creates an order from the caller's own SQL, with `?` in place of each value. Names in it are
    /// not checked.
    public init(sql: String, arguments: [SQLValue] = []) {
        fragment = SQLFragment(sql: sql, arguments: arguments)
    }

    /// The same order with nulls before all other values.
    public var nullsFirst: Ordering { Ordering(fragment + " NULLS FIRST") }
    /// The same order with nulls after all other values.
    public var nullsLast: Ordering { Ordering(fragment + " NULLS LAST") }
}

extension ColumnExpression {
    /// The order from the smallest to the largest value. Nulls come first.
    public var ascending: Ordering { Ordering(fragment) }
    /// The order from the largest to the smallest value. Nulls come last.
    public var descending: Ordering { Ordering(fragment + " DESC") }
}
