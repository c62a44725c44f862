internal import Foundation

extension PredicateExpressions.KeyPath: PredicateNode {
    func term(_ translator: PredicateTranslator) throws -> PredicateTranslator.Term {
        guard root is PredicateExpressions.Variable<Root.Output>,
            Root.Output.self == translator.root
        else { return try nested(translator) }
        let column = try translator.column(keyPath)
        let name = ColumnName(table: nil, name: column.name)
        return PredicateTranslator.Term(
            fragment: SQLFragment(column: name), column: name,
            isOptional: Output.self is any AnyOptional.Type)
    }

    /// Translates a property of a property. Only one is supported: whether a text is empty.
    private func nested(
        _ translator: PredicateTranslator
    ) throws -> PredicateTranslator.Term {
        guard kind == .collectionIsEmpty, Root.Output.self == String.self else {
            let name = kind == .collectionCount ? "count" : "a property of \(Root.Output.self)"
            throw PredicateTranslator.refusal(of: name)
        }
        return term(Condition("(" + (try translator.term(root)).fragment + " = '')"))
    }
}

extension PredicateExpressions.Value: PredicateNode {
    func term(_ translator: PredicateTranslator) throws -> PredicateTranslator.Term {
        guard let known = value as? any ColumnValue else {
            throw PredicateTranslator.refusal(of: "a value of the type \(Output.self)")
        }
        let value = known.sqlValue
        return PredicateTranslator.Term(
            fragment: SQLFragment(value: value), value: value, isOptional: value.isNull)
    }
}

extension PredicateExpressions.NilLiteral: PredicateNode {
    func term(_ translator: PredicateTranslator) -> PredicateTranslator.Term {
        PredicateTranslator.Term(
            fragment: SQLFragment(value: .null), value: .null, isOptional: true)
    }
}

extension PredicateExpressions.NilCoalesce: PredicateNode {
    func term(_ translator: PredicateTranslator) throws -> PredicateTranslator.Term {
        let left = try translator.term(lhs)
        let right = try translator.term(rhs)
        return PredicateTranslator.Term(
            fragment: "ifnull(" + left.beside(right) + ", " + right.beside(left) + ")",
            column: left.column)
    }
}

extension PredicateExpressions.ForcedUnwrap: PredicateNode {
    func term(_ translator: PredicateTranslator) throws -> PredicateTranslator.Term {
        throw PredicateTranslator.refusal(of: "a forced unwrapping")
    }
}

extension PredicateExpressions.Arithmetic: PredicateNode {
    func term(_ translator: PredicateTranslator) throws -> PredicateTranslator.Term {
        let sign: String
        switch op {
        case .add: sign = "+"
        case .subtract: sign = "-"
        case .multiply: sign = "*"
        @unknown default: throw PredicateTranslator.refusal(of: "the operation \(op)")
        }
        let left = try translator.term(lhs)
        let right = try translator.term(rhs)
        return PredicateTranslator.Term(
            fragment: "(" + left.fragment + " \(sign) " + right.fragment + ")")
    }
}

extension PredicateExpressions.UnaryMinus: PredicateNode {
    func term(_ translator: PredicateTranslator) throws -> PredicateTranslator.Term {
        PredicateTranslator.Term(fragment: "(-" + (try translator.term(wrapped)).fragment + ")")
    }
}
