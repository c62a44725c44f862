/// A condition on rows.
///
/// ```swift
/// let unsigned = players.club == nil && !players.name.hasPrefix("Test")
/// let found = try players.where(unsigned).fetch(in: context)
/// ```
///
/// A row meets a condition or does not meet it; there is no third outcome as in SQL. `==` and `!=`
/// treat null as a value, as Swift treats nil: null equals null and differs from every other value.
/// A row without a shirt therefore meets `shirt != 7`. No other comparison is met by a null. `!` is
/// met exactly if its condition is not met.
///
/// Texts compare by the column's collation, or byte by byte if it has none. Unlike in Swift, the
/// composed and the decomposed form of a letter are different texts.
public struct Condition: Hashable, Sendable {
    /// The condition as SQL.
    public let fragment: SQLFragment

    /// Creates a condition from the caller's own SQL, with `?` in place of each value. Names in it
    /// are not checked.
    public init(sql: String, arguments: [SQLValue] = []) {
        fragment = SQLFragment(sql: "(\(sql))", arguments: arguments)
    }

    init(_ fragment: SQLFragment) {
        self.fragment = fragment
    }

    /// A condition that every row meets.
    public static let always = Condition(SQLFragment(sql: "1"))
    /// A condition that no row meets.
    public static let never = Condition(SQLFragment(sql: "0"))

    /// Is met if all conditions are met, and also if there are none.
    public static func all(of conditions: [Condition]) -> Condition {
        combined(conditions, " AND ") ?? .always
    }

    /// Is met if at least one condition is met. It is not met if there are none.
    public static func any(of conditions: [Condition]) -> Condition {
        combined(conditions, " OR ") ?? .never
    }

    private static func combined(_ conditions: [Condition], _ separator: String) -> Condition? {
        guard conditions.count > 1 else { return conditions.first }
        let parts = conditions.map(\.fragment).joined(separator: separator)
        return Condition("(" + parts + ")")
    }

    /// Is met if both conditions are met.
    public static func && (left: Condition, right: Condition) -> Condition {
        all(of: [left, right])
    }

    /// Is met if at least one of the two conditions is met.
    public static func || (left: Condition, right: Condition) -> Condition {
        any(of: [left, right])
    }

    /// Is met if the condition is not met.
    public static prefix func ! (condition: Condition) -> Condition {
        Condition("(" + condition.fragment + " IS NOT TRUE)")
    }
}
