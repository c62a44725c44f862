internal import Foundation

/// Turns the tree of a `#Predicate` into SQL.
///
/// The expressions Foundation builds are public types; each that has a meaning in SQL says it here
/// by conforming to `PredicateNode`. Everything else is refused by name.
struct PredicateTranslator {
    let columns: [any AnyColumn]
    /// The root of key paths.
    let root: Any.Type

    /// One side of a comparison.
    struct Term {
        let fragment: SQLFragment
        /// The column, where the term is one.
        var column: ColumnName?
        /// The value, where the term is one: it is bound once it is known what to.
        var value: SQLValue?
        var isOptional = false

        /// The term beside another one.
        func beside(_ other: Term) -> SQLFragment {
            value.map { SQLFragment(value: $0, for: other.column) } ?? fragment
        }
    }

    /// The ends of a range, and how what is in it compares with the upper one.
    typealias Bounds = (lower: Term, upper: Term, end: String)

    /// - Throws: `StoreError` `.unknown` for a property without a column, `.statement` for what
    ///   SQL cannot say.
    func term(_ expression: Any) throws -> Term {
        guard let node = expression as? any PredicateNode else {
            throw Self.refusal(of: "\(Self.name(of: expression))")
        }
        return try node.term(self)
    }

    /// An expression that is true or false.
    func condition(_ expression: Any) throws -> Condition {
        let term = try term(expression)
        // A stored boolean, and a constant, are conditions by their values.
        return Condition(term.value.map { SQLFragment(value: $0) } ?? term.fragment)
    }

    /// The column of a property.
    func column(_ path: AnyKeyPath) throws -> any AnyColumn {
        if let found = columns.first(where: { $0.shows(path) }) { return found }
        let known = columns.filter { $0.property != nil }.map(\.name).joined(separator: ", ")
        throw StoreError(
            .unknown,
            "No column shows the property \(path) of \(root); give it a column with that property,"
                + " listed in the table's `columns`. Those listed: "
                + (known.isEmpty ? "none" : known) + ".")
    }

    /// Text that is looked for must be at hand, not a column.
    func text(_ expression: Any, in what: String) throws -> String {
        guard case .text(let text)? = try term(expression).value else {
            throw Self.refusal(of: "\(what) with anything but a given text")
        }
        return text
    }

    static func refusal(of name: String) -> StoreError {
        StoreError(
            .statement,
            "The predicate uses \(name), which cannot be asked of the database; say it by a"
                + " condition on columns, or filter what was read.")
    }

    /// The expression's name without its operands.
    static func name(of expression: Any) -> String {
        let name = String(describing: type(of: expression))
        return String(name.prefix { $0 != "<" })
    }
}

/// An expression of a predicate that has a meaning in SQL.
protocol PredicateNode {
    func term(_ translator: PredicateTranslator) throws -> PredicateTranslator.Term
}

extension PredicateNode {
    /// A condition as a term.
    func term(_ condition: Condition) -> PredicateTranslator.Term {
        PredicateTranslator.Term(fragment: condition.fragment)
    }
}
