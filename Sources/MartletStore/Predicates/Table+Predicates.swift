public import Foundation

/// Asking by `#Predicate`: the properties it names are found among the table's `columns`.
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
/// try players.all(matching: #Predicate { $0.name.contains("x") }, in: context)
/// ```
///
/// Comparisons, `&&`, `||`, `!`, `?:`, `??`, `+`, `-`, `*`, `contains` and `starts(with:)` on text,
/// ranges, and `contains` of given lists are understood. What SQL cannot say as Swift means it is
/// refused by name (`StoreError` `.statement`), before anything runs.
extension Table {
    /// The records a predicate holds for.
    /// - Throws: `StoreError` `.unknown` for a property no column shows, `.statement` for what
    ///   cannot be said in SQL.
    public func all(
        matching predicate: Predicate<Element>, orderBy ordering: [Ordering] = [],
        limit: Int? = nil, in context: ReadContext
    ) throws -> [Element] {
        try all(
            where: condition(predicate), orderBy: ordering, limit: limit, in: context)
    }

    /// The first record a predicate holds for.
    public func first(
        matching predicate: Predicate<Element>, orderBy ordering: [Ordering] = [],
        in context: ReadContext
    ) throws -> Element? {
        try first(where: condition(predicate), orderBy: ordering, in: context)
    }

    /// The number of records a predicate holds for.
    public func count(
        matching predicate: Predicate<Element>, in context: ReadContext
    ) throws -> Int {
        try count(where: condition(predicate), in: context)
    }

    /// The same as a condition, to be combined with others.
    public func condition(_ predicate: Predicate<Element>) throws -> Condition {
        try PredicateTranslator(columns: columns, root: Element.self)
            .condition(predicate.expression)
    }
}
