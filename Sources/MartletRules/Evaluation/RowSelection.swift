package import MartletModel

/// The part of a type's policies that depends on a person alone, computed: which values the rows have
/// that the person may see, and everything else that the rows are judged by.
///
/// Two selections of the same person that are equal show the same of the same rows, unless rows of
/// `typesReadByRow` have changed.
package struct RowSelection: Sendable {
    /// The values of columns, by column (0 is the key): each row that the person may see has one of them.
    /// Nil if the policies do not tell this without the rows.
    package let keys: [Int: Set<Value>]?
    /// The types whose rows are read for each row in a way that only the row tells.
    package let typesReadByRow: Set<Int>
    /// The keys one by one, in a fixed order; nil if there are none.
    let lookups: [(column: Int, value: Value)]?
    private let inputs: [Input]

    private enum Input: Hashable {
        case value(RuleValue)
        case list(Set<RuleValue>, column: Int?)
    }

    /// The rows that a person may see, or may have seen, in one of two selections only.
    package enum Difference: Hashable, Sendable {
        /// Rows with one of these values, by column. Empty if both are equal.
        case rows([Int: Set<Value>])
        /// Any rows.
        case any
    }

    /// Returns which rows may be judged in another way than by an earlier selection of the same person.
    package func difference(from old: RowSelection) -> Difference {
        guard inputs.count == old.inputs.count else { return .any }
        var changed: [Int: Set<Value>] = [:]
        for (one, other) in zip(inputs, old.inputs) where one != other {
            guard case .list(let values, let column?) = one, case .list(let others, _) = other,
                // A column without a value is judged by whether there are any.
                values.isEmpty == others.isEmpty,
                let moved = Self.values(values.symmetricDifference(others))
            else { return .any }
            changed[column, default: []].formUnion(moved)
        }
        guard let keys, let oldKeys = old.keys else {
            return keys == old.keys ? .rows(changed) : .any
        }
        for column in Set(keys.keys).union(oldKeys.keys) {
            let moved = (keys[column] ?? []).symmetricDifference(oldKeys[column] ?? [])
            if !moved.isEmpty { changed[column, default: []].formUnion(moved) }
        }
        return .rows(changed)
    }

    /// Returns integers and texts as a column has them; nil if there are other values.
    private static func values(_ values: Set<RuleValue>) -> Set<Value>? {
        var found: Set<Value> = []
        for value in values {
            switch value {
            case .integer(let number): found.insert(.integer(number))
            case .text(let text): found.insert(.text(text))
            default: return nil
            }
        }
        return found
    }
}

extension RowSelection {
    /// Computes the selection of a type for an evaluator's viewer.
    /// - Throws: `RuleValueFault` if a value cannot be computed; what the storage throws.
    fileprivate init(_ type: Int, _ evaluator: RuleEvaluator) throws {
        var frames = Frames(evaluator: evaluator, [])
        var found: (keys: [Int: Set<Value>]?, inputs: [Input], types: Set<Int>) = ([:], [], [])
        for policy in evaluator.program.selecting(type)
        where policy.applies(to: .select, evaluator.viewer.roles) {
            guard let split = policy.split else { continue }
            let first = found.inputs.count
            for input in split.inputs {
                switch input {
                case .value(let node): found.inputs.append(.value(try frames.value(node)))
                case .list(let query, let column):
                    found.inputs.append(.list(try frames.values(query), column: column))
                }
            }
            for read in split.typesReadByRow {
                found.types.formUnion(evaluator.program.typesRead(by: read).union([read]))
            }
            guard policy.isPermissive else { continue }
            for cover in split.covers
            where try cover.gates.allSatisfy({ try frames.truth($0) == true }) {
                var values: Set<RuleValue>?
                switch cover.key?.values {
                case .node(let node)?: values = [try frames.value(node)]
                case .input(let index)?:
                    if case .list(let list, _) = found.inputs[first + index] { values = list }
                case nil: break
                }
                // NULL is equal to no value.
                values?.remove(.null)
                guard let column = cover.key?.column, let values = values.flatMap(Self.values)
                else {
                    found.keys = nil
                    continue
                }
                found.keys?[column, default: []].formUnion(values)
            }
        }
        (keys, inputs, typesReadByRow) = (found.keys, found.inputs, found.types)
        lookups = found.keys.map { keys in
            keys.sorted { $0.key < $1.key }.flatMap { column, values in
                values.sorted(by: Self.isBefore).map { (column, $0) }
            }
        }
    }

    private static func isBefore(_ one: Value, _ other: Value) -> Bool {
        switch (one, other) {
        case (.integer(let a), .integer(let b)): a < b
        case (.text(let a), .text(let b)): a.utf8.lexicographicallyPrecedes(b.utf8)
        case (.integer, _): true
        default: false
        }
    }
}

/// The selections that an evaluator has computed, by type.
final class RowSelections {
    private var generation = 0
    private var known: [Int: RowSelection?] = [:]

    /// Returns the selection of a type; nil if a value cannot be computed.
    func selection(of type: Int, _ evaluator: RuleEvaluator) throws -> RowSelection? {
        if generation != evaluator.rows.generation {
            (generation, known) = (evaluator.rows.generation, [:])
        }
        if let found = known[type] { return found }
        var plain = evaluator
        plain.trace = nil
        var found: RowSelection?
        do {
            found = try RowSelection(type, plain)
        } catch is RuleValueFault {}
        known[type] = .some(found)
        return found
    }
}

@available(*, unavailable)
extension RowSelections: Sendable {}

extension RuleEvaluator {
    /// Returns the part of a type's policies that depends on the viewer alone; nil if a value cannot
    /// be computed.
    /// - Throws: What the storage throws.
    package func selection(of type: Int) throws -> RowSelection? {
        try selections.selection(of: type, self)
    }
}
