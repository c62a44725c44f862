internal import Foundation

extension PredicateExpressions.Conjunction: PredicateNode {
    func term(_ translator: PredicateTranslator) throws -> PredicateTranslator.Term {
        term(try translator.condition(lhs) && translator.condition(rhs))
    }
}

extension PredicateExpressions.Disjunction: PredicateNode {
    func term(_ translator: PredicateTranslator) throws -> PredicateTranslator.Term {
        term(try translator.condition(lhs) || translator.condition(rhs))
    }
}

extension PredicateExpressions.Negation: PredicateNode {
    func term(_ translator: PredicateTranslator) throws -> PredicateTranslator.Term {
        term(!(try translator.condition(wrapped)))
    }
}

extension PredicateExpressions.Conditional: PredicateNode {
    func term(_ translator: PredicateTranslator) throws -> PredicateTranslator.Term {
        let condition = try translator.condition(test)
        let (yes, no) = (try translator.term(trueBranch), try translator.term(falseBranch))
        return PredicateTranslator.Term(
            fragment: "(CASE WHEN " + condition.fragment + " THEN " + yes.fragment + " ELSE "
                + no.fragment + " END)")
    }
}

extension PredicateExpressions.Equal: PredicateNode {
    func term(_ translator: PredicateTranslator) throws -> PredicateTranslator.Term {
        let (left, right) = (try translator.term(lhs), try translator.term(rhs))
        // Two properties that are both nil are equal, which needs IS. With a given value, = lets
        // SQLite use an index.
        let mayBothBeNull = left.isOptional && right.isOptional
        let sign = mayBothBeNull ? " IS " : " = "
        return term(
            Condition("(" + left.beside(right) + sign + right.beside(left) + ")"))
    }
}

extension PredicateExpressions.NotEqual: PredicateNode {
    func term(_ translator: PredicateTranslator) throws -> PredicateTranslator.Term {
        let (left, right) = (try translator.term(lhs), try translator.term(rhs))
        return term(
            Condition("(" + left.beside(right) + " IS NOT " + right.beside(left) + ")"))
    }
}

extension PredicateExpressions.Comparison: PredicateNode {
    func term(_ translator: PredicateTranslator) throws -> PredicateTranslator.Term {
        let sign: String
        switch op {
        case .lessThan: sign = "<"
        case .lessThanOrEqual: sign = "<="
        case .greaterThan: sign = ">"
        case .greaterThanOrEqual: sign = ">="
        @unknown default: throw PredicateTranslator.refusal(of: "the comparison \(op)")
        }
        let (left, right) = (try translator.term(lhs), try translator.term(rhs))
        return term(
            Condition("(" + left.beside(right) + " \(sign) " + right.beside(left) + ")"))
    }
}

// MARK: - Lists and ranges

extension PredicateExpressions.SequenceContains: PredicateNode {
    func term(_ translator: PredicateTranslator) throws -> PredicateTranslator.Term {
        guard let list = sequence as? any GivenList else {
            throw PredicateTranslator.refusal(of: "a list that is not given as a value")
        }
        let element = try translator.term(element)
        let looked = ComputedColumn<SQLValue>(element.fragment)
        return term(looked.in(try list.sqlValues(translator)))
    }
}

/// A list that a predicate contains as a value.
protocol GivenList {
    func sqlValues(_ translator: PredicateTranslator) throws -> [SQLValue]
}

extension PredicateExpressions.Value: GivenList where Output: Sequence {
    func sqlValues(_ translator: PredicateTranslator) throws -> [SQLValue] {
        try value.map { element in
            guard let known = element as? any ColumnValue else {
                throw PredicateTranslator.refusal(of: "a list of \(Output.Element.self)")
            }
            return known.sqlValue
        }
    }
}

extension PredicateExpressions.RangeExpressionContains: PredicateNode {
    func term(_ translator: PredicateTranslator) throws -> PredicateTranslator.Term {
        guard let range = range as? any GivenRange else {
            throw PredicateTranslator.refusal(of: PredicateTranslator.name(of: range))
        }
        let (lower, upper, end) = try range.bounds(translator)
        let element = try translator.term(element)
        let above = Condition("(" + element.fragment + " >= " + lower.beside(element) + ")")
        let below = Condition("(" + element.fragment + " \(end) " + upper.beside(element) + ")")
        return term(above && below)
    }
}

/// A range with two bounds.
protocol GivenRange {
    func bounds(_ translator: PredicateTranslator) throws -> PredicateTranslator.Bounds
}

extension PredicateExpressions.Range: GivenRange {
    func bounds(_ translator: PredicateTranslator) throws -> PredicateTranslator.Bounds {
        (try translator.term(lower), try translator.term(upper), "<")
    }
}

extension PredicateExpressions.ClosedRange: GivenRange {
    func bounds(_ translator: PredicateTranslator) throws -> PredicateTranslator.Bounds {
        (try translator.term(lower), try translator.term(upper), "<=")
    }
}

// MARK: - Text

extension PredicateExpressions.CollectionContainsCollection: PredicateNode {
    func term(_ translator: PredicateTranslator) throws -> PredicateTranslator.Term {
        let base = ComputedColumn<String>(try translator.term(base).fragment)
        return term(base.contains(try translator.text(other, in: "contains")))
    }
}

extension PredicateExpressions.SequenceStartsWith: PredicateNode {
    func term(_ translator: PredicateTranslator) throws -> PredicateTranslator.Term {
        let base = ComputedColumn<String>(try translator.term(base).fragment)
        return term(base.hasPrefix(try translator.text(prefix, in: "starts(with:)")))
    }
}
