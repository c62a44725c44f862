/// What rows are ordered by.
public struct Ordering: Hashable, Sendable {
    /// The order as SQL.
    public let fragment: SQLFragment

    init(_ fragment: SQLFragment) {
        self.fragment = fragment
    }
}

extension Column {
    /// From the smallest to the largest; nulls come first.
    public var ascending: Ordering { Ordering(fragment) }
    /// From the largest to the smallest; nulls come last.
    public var descending: Ordering { Ordering(fragment + " DESC") }
}
