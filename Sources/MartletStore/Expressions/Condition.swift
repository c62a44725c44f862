/// What a row must meet.
///
/// A condition is met or not met; there is no third outcome as in SQL. `==` and `!=` treat null as
/// a value, as Swift does nil: null equals null and differs from everything else, so
/// `shirt != 7` is met by rows that have no shirt. Any other comparison with a null is not met,
/// and `!` is met exactly where its condition is not.
///
/// Texts compare as the column's collation says, byte by byte where it says nothing; unlike in
/// Swift, one letter written in two ways (composed and decomposed) is two texts.
public struct Condition: Hashable, Sendable {
    /// The condition as SQL.
    public let fragment: SQLFragment

    /// A condition of one's own, with `?` in place of each value. Names in it are not checked.
    public init(sql: String, arguments: [SQLValue] = []) {
        fragment = SQLFragment(sql: "(\(sql))", arguments: arguments)
    }

    init(_ fragment: SQLFragment) {
        self.fragment = fragment
    }

    /// Met by every row.
    public static let always = Condition(SQLFragment(sql: "1"))
    /// Met by no row.
    public static let never = Condition(SQLFragment(sql: "0"))

    /// Met where all of these are; by every row where there are none.
    public static func all(of conditions: [Condition]) -> Condition {
        combined(conditions, " AND ") ?? .always
    }

    /// Met where one of these is; by no row where there are none.
    public static func any(of conditions: [Condition]) -> Condition {
        combined(conditions, " OR ") ?? .never
    }

    private static func combined(_ conditions: [Condition], _ separator: String) -> Condition? {
        guard conditions.count > 1 else { return conditions.first }
        let parts = conditions.map(\.fragment).joined(separator: separator)
        return Condition("(" + parts + ")")
    }

    /// Met where both are.
    public static func && (left: Condition, right: Condition) -> Condition {
        all(of: [left, right])
    }

    /// Met where one of both is, or both are.
    public static func || (left: Condition, right: Condition) -> Condition {
        any(of: [left, right])
    }

    /// Met where the condition is not.
    public static prefix func ! (condition: Condition) -> Condition {
        Condition("(" + condition.fragment + " IS NOT TRUE)")
    }
}
