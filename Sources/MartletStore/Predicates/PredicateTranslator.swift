internal import Foundation

/// Translates the tree of a `#Predicate` into SQL.
///
/// Foundation's expressions are public types. Each one that has a meaning in SQL conforms to
/// `PredicateNode` here. All others are refused by name.
struct PredicateTranslator {
    let columns: [any AnyColumn]
    /// The root type of key paths.
    let root: Any.Type

    /// One side of a comparison.
    struct Term {
        let fragment: SQLFragment
        /// The column; nil if the term is not a column.
        var column: ColumnName?
        /// The value; nil if the term is not a value. It is bound once the other side is known.
        var value: SQLValue?
        var isOptional = false

        /// Returns the fragment of this term for a comparison with another term.
        func beside(_ other: Term) -> SQLFragment {
            value.map { SQLFragment(value: $0, for: other.column) } ?? fragment
        }
    }

    /// The bounds of a range, and the operator that compares an element with the upper one.
    typealias Bounds = (lower: Term, upper: Term, end: String)

    /// Translates an expression.
    /// - Throws: `StoreError`: `.unknown` for a property without a column, `.statement` for an
    ///   expression that SQL does not have.
    func term(_ expression: Any) throws -> Term {
        guard let node = expression as? any PredicateNode else {
            throw Self.refusal(of: "\(Self.name(of: expression))")
        }
        return try node.term(self)
    }

    /// Translates an expression that is true or false.
    func condition(_ expression: Any) throws -> Condition {
        let term = try term(expression)
        // A stored boolean and a constant are conditions by their values.
        return Condition(term.value.map { SQLFragment(value: $0) } ?? term.fragment)
    }

    /// Returns the column of a property.
    func column(_ path: AnyKeyPath) throws -> any AnyColumn {
        if let found = columns.first(where: { $0.shows(path) }) { return found }
        let known = columns.filter { $0.property != nil }.map(\.name).joined(separator: ", ")
        throw StoreError(
            .unknown,
            "No column shows the property \(path) of \(root); give it a column with that property,"
                + " listed in the table's `columns`. Those listed: "
                + (known.isEmpty ? "none" : known) + ".")
    }

    /// Returns the text to search for, which must be a given value and not a column.
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

    /// Returns the expression's name without its operands.
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
    /// Returns a condition as a term.
    func term(_ condition: Condition) -> PredicateTranslator.Term {
        PredicateTranslator.Term(fragment: condition.fragment)
    }
}
