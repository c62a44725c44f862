public import Foundation

/// Queries by `#Predicate`. Each property that the predicate names must belong to one of the
/// table's `columns`.
///
/// ```swift
/// struct Players: Table {
///     typealias Element = Player
///     let tableName = "players"
///     let name = Column("name", \Player.name)
///     let shirt = Column("shirt", \Player.shirt)
///     var columns: [any AnyColumn] { [name, shirt] }
/// }
///
/// let found = try players.all(matching: #Predicate { $0.name.contains("x") }, in: context)
/// ```
///
/// Supported are comparisons, `&&`, `||`, `!`, `?:`, `??`, `+`, `-`, `*`, `contains` and
/// `starts(with:)` on text, ranges, and `contains` of given lists. An expression that SQL cannot
/// evaluate as Swift does is refused by name (`StoreError` `.statement`) before any statement runs.
extension Table {
    /// Returns the records that satisfy a predicate.
    /// - Throws: `StoreError`: `.unknown` for a property without a column, `.statement` for an
    ///   expression that SQL does not have.
    public func all(
        matching predicate: Predicate<Element>, orderBy ordering: [Ordering] = [],
        limit: Int? = nil, in context: ReadContext
    ) throws -> [Element] {
        try all(
            where: condition(predicate), orderBy: ordering, limit: limit, in: context)
    }

    /// Returns the first record that satisfies a predicate; nil if there is none.
    /// - Throws: `StoreError`, as `all(matching:)`.
    public func first(
        matching predicate: Predicate<Element>, orderBy ordering: [Ordering] = [],
        in context: ReadContext
    ) throws -> Element? {
        try first(where: condition(predicate), orderBy: ordering, in: context)
    }

    /// Returns the number of records that satisfy a predicate.
    /// - Throws: `StoreError`, as `all(matching:)`.
    public func count(
        matching predicate: Predicate<Element>, in context: ReadContext
    ) throws -> Int {
        try count(where: condition(predicate), in: context)
    }

    /// Returns the predicate as a condition, which can be combined with others.
    /// - Throws: `StoreError`, as `all(matching:)`.
    public func condition(_ predicate: Predicate<Element>) throws -> Condition {
        try PredicateTranslator(columns: columns, root: Element.self)
            .condition(predicate.expression)
    }
}
