internal import MartletModel

/// Computes conditions and values. It holds the row that is judged, and one row of each source of
/// the queries around the node.
struct Frames {
    private let evaluator: RuleEvaluator
    private var rows: [RuleRow]

    init(evaluator: RuleEvaluator, _ row: RuleRow) {
        self.evaluator = evaluator
        rows = [row]
    }

    /// Returns whether a condition holds; nil for unknown.
    /// - Throws: `RuleValueFault` if a value cannot be computed; what the storage throws.
    mutating func truth(_ node: Node) throws -> Bool? {
        switch node {
        case .not(let inner):
            // The rows that make the inner condition true are no reason for this one.
            return try withoutTrace { try $0.truth(inner) }.map { !$0 }
        case .and(let nodes): return try joined(nodes, decided: false) { try $0.truth($1) }
        case .or(let nodes): return try joined(nodes, decided: true) { try $0.truth($1) }
        case .role(let role): return evaluator.viewer.roles.contains(role)
        case .comparison(let comparison, let left, let right):
            return holds(comparison, try value(left).order(value(right)))
        case .test(let inner, nil): return try value(inner) == .null
        case .test(let inner, let expected): return try truth(inner) == expected
        case .distinct(let left, let right):
            let (left, right) = (try value(left), try value(right))
            if left == .null || right == .null { return left != right }
            return try left.order(right) != 0
        case .between(let node, let lower, let upper):
            let value = try value(node)
            let isAbove = holds(.greaterOrEqual, try value.order(self.value(lower)))
            if isAbove == false { return false }
            let isBelow = holds(.lessOrEqual, try value.order(self.value(upper)))
            return isBelow == false ? false : isAbove == nil ? nil : isBelow
        case .list(let node, let nodes):
            let value = try value(node)
            return try joined(nodes, decided: true) { frames, member in
                try value.order(frames.value(member)).map { $0 == 0 }
            }
        case .among(let node, let query): return try contains(value(node), query)
        case .like(let text, let pattern, let escape):
            return try like(value(text), value(pattern), escape.map { try value($0) })
        case .exists(let query):
            var isFound = false
            try visit(query) { _ in
                isFound = true
                return false
            }
            return isFound
        default:
            guard case .boolean(let truth) = try value(node) else { return nil }
            return truth
        }
    }

    private func holds(_ comparison: Comparison, _ order: Int?) -> Bool? {
        order.map(comparison.holds)
    }

    /// Joins what is true of nodes with AND or OR, which `decided` ends.
    private mutating func joined(
        _ nodes: [Node], decided: Bool, _ truth: (inout Frames, Node) throws -> Bool?
    ) throws -> Bool? {
        var result: Bool? = !decided
        for node in nodes {
            let mark = mark
            switch try truth(&self, node) {
            case decided: return decided
            case nil: result = nil
            default: break
            }
            // A part of OR that does not hold is no reason for it.
            if decided { takeBack(to: mark) }
        }
        return result
    }

    // MARK: - The trace

    /// The number of rows in the trace.
    private var mark: Int { evaluator.trace?.rows.count ?? 0 }

    private func takeBack(to mark: Int) { evaluator.trace?.takeBack(to: mark) }

    private mutating func withoutTrace<Result>(
        _ body: (inout Frames) throws -> Result
    ) rethrows -> Result {
        let mark = mark
        let result = try body(&self)
        takeBack(to: mark)
        return result
    }

    /// Returns a value.
    /// - Throws: `RuleValueFault` if it cannot be computed; what the storage throws.
    mutating func value(_ node: Node) throws -> RuleValue {
        switch node {
        case .constant(let value): return value
        case .column(let frame, let column, let type):
            return RuleValue(rows[frame][column], type)
        case .user: return evaluator.viewer.user.map { .text($0) } ?? .null
        case .claim(let name):
            return evaluator.viewer.claims.value(ofExactName: name).map { .text($0) } ?? .null
        case .today: return .date(evaluator.viewer.today)
        case .arithmetic(let sign, let left, let right):
            return try value(left).computed(sign, value(right))
        case .negative(let inner): return try RuleValue.integer(0).computed(.minus, value(inner))
        case .cast(let inner, let type): return try value(inner).cast(to: type)
        case .uuid(let inner): return try value(inner).uuid()
        case .integer(let inner, let bits): return try value(inner).fitting(bits: bits)
        case .setting(let inner, let name):
            let value = try value(inner)
            guard value != .null else {
                throw RuleValueFault("the setting “\(name)” has no value")
            }
            return value
        case .coalesce(let nodes):
            for node in nodes {
                let value = try value(node)
                if value != .null { return value }
            }
            return .null
        case .nullIf(let left, let right):
            let value = try value(left)
            return try value.order(self.value(right)) == 0 ? .null : value
        case .scalar(let query):
            return try scalar(query)
        default: return try truth(node).map { .boolean($0) } ?? .null
        }
    }

    private mutating func scalar(_ query: ResolvedQuery) throws -> RuleValue {
        let (trace, mark) = (evaluator.trace, self.mark)
        var through: [RuleTrace.Row] = []
        var found: [RuleValue] = []
        try visit(query) { value in
            found.append(value)
            through = trace?.rows(since: mark) ?? []
            return found.count < 2
        }
        guard found.count < 2 else {
            throw RuleValueFault("a query in brackets has more than one row")
        }
        trace?.add(through)
        return found.first ?? .null
    }

    private mutating func contains(_ value: RuleValue, _ query: ResolvedQuery) throws -> Bool? {
        var result: Bool? = false
        try visit(query) { other in
            switch try value.order(other) {
            case 0: result = true
            case nil: result = nil
            default: break
            }
            return result != true
        }
        return result
    }

    /// Returns all values of a query.
    mutating func values(_ query: ResolvedQuery) throws -> Set<RuleValue> {
        var values: Set<RuleValue> = []
        try visit(query) { value in
            values.insert(value)
            return true
        }
        return values
    }

    private func like(
        _ text: RuleValue, _ pattern: RuleValue, _ escape: RuleValue?
    ) throws -> Bool? {
        guard case .text(let text) = text, case .text(let pattern) = pattern else { return nil }
        guard let escape else { return try LikePattern.matches(text, pattern, escape: "\\") }
        guard case .text(let sign) = escape else { return nil }
        guard sign.unicodeScalars.count < 2 else {
            throw RuleValueFault("an escape character of LIKE is one character")
        }
        return try LikePattern.matches(text, pattern, escape: sign.unicodeScalars.first)
    }

    // MARK: - Queries

    /// Calls a closure with what a query selects, until it wants no more.
    private mutating func visit(
        _ query: ResolvedQuery, _ body: (RuleValue) throws -> Bool
    ) throws {
        for condition in query.conditions where try truth(condition) != true { return }
        guard !query.order.isEmpty || query.limit != nil else {
            _ = try descend(query, 0) { frames in
                try body(try query.output.map { try frames.value($0) } ?? .null)
            }
            return
        }
        let mark = mark
        var found:
            [(keys: [RuleValue], ids: [RuleValue], output: RuleValue, through: [RuleTrace.Row])] =
                []
        _ = try descend(query, 0) { frames in
            found.append(
                (
                    try query.order.map { try frames.value($0.value) },
                    query.sources.map { RuleValue(frames.rows[$0.frame][0], .any) },
                    try query.output.map { try frames.value($0) } ?? .null,
                    frames.evaluator.trace?.rows(since: mark) ?? []
                ))
            return true
        }
        try found.sort { try Self.isBefore($0.keys, $0.ids, $1.keys, $1.ids, query.order) }
        for row in found.prefix(query.limit ?? found.count) {
            evaluator.trace?.add(row.through)
            guard try body(row.output) else { return }
            takeBack(to: mark)
        }
    }

    private static func isBefore(
        _ keys: [RuleValue], _ ids: [RuleValue], _ otherKeys: [RuleValue],
        _ otherIDs: [RuleValue], _ order: [ResolvedQuery.Order]
    ) throws -> Bool {
        for (index, part) in order.enumerated() {
            let (one, other) = (keys[index], otherKeys[index])
            if one == .null || other == .null {
                if one == other { continue }
                return (one == .null) == part.nullsFirst
            }
            guard let difference = try one.order(other), difference != 0 else { continue }
            return (difference < 0) != part.isDescending
        }
        // Rows that are equal so far have a fixed order all the same.
        for (one, other) in zip(ids, otherIDs) {
            guard let difference = try one.order(other), difference != 0 else { continue }
            return difference < 0
        }
        return false
    }

    /// Binds rows to the sources of a query, from one on.
    /// - Returns: Whether more is wanted.
    private mutating func descend(
        _ query: ResolvedQuery, _ index: Int, _ body: (inout Frames) throws -> Bool
    ) throws -> Bool {
        guard index < query.sources.count else { return try body(&self) }
        let source = query.sources[index]
        var match: (column: Int, value: Value)?
        if let lookup = source.lookup {
            switch try value(lookup.value) {
            case .null: return true
            case .integer(let number): match = (lookup.column, .integer(number))
            case .text(let text): match = (lookup.column, .text(text))
            default: break
            }
        }
        while rows.count <= source.frame { rows.append([]) }
        var wantsMore = true
        let evaluator = evaluator
        try evaluator.visit(source.type, where: match) { row in
            rows[source.frame] = row
            let mark = mark
            evaluator.trace?.note(source.type, row)
            wantsMore = try leadsOn(row, to: query, index, body)
            if wantsMore { takeBack(to: mark) }
            return wantsMore
        }
        return wantsMore
    }

    /// Returns whether more is wanted after a row of a source.
    private mutating func leadsOn(
        _ row: RuleRow, to query: ResolvedQuery, _ index: Int,
        _ body: (inout Frames) throws -> Bool
    ) throws -> Bool {
        let source = query.sources[index]
        for filter in source.filters where try truth(filter) != true { return true }
        guard try evaluator.maySelect(row, of: source.type) else { return true }
        return try descend(query, index + 1, body)
    }
}

extension RuleEvaluator {
    /// Calls a closure with the rows of a source. If it reads all of a type, the rows that the type's
    /// policies hide are left out as far as their values tell.
    fileprivate func visit(
        _ type: Int, where match: (column: Int, value: Value)?,
        _ body: (RuleRow) throws -> Bool
    ) throws {
        guard match == nil, program.isSecured[type],
            let lookups = try selection(of: type)?.lookups, lookups.count <= Self.mostLookups
        else { return try rows.visit(type, where: match, body) }
        var wantsMore = true
        // A look-up may return more rows, and a row may have values of two columns.
        var seen: Set<Value> = []
        for lookup in lookups where wantsMore {
            try rows.visit(type, where: lookup) { row in
                if lookups.count > 1, !seen.insert(row[0]).inserted { return true }
                wantsMore = try body(row)
                return wantsMore
            }
        }
    }

    /// The most values for which rows are looked up one by one in place of reading all.
    private static let mostLookups = 1_000
}

extension RuleValue {
    /// Reads a value of a column.
    init(_ value: Value, _ type: RuleType) {
        switch (value, type) {
        case (.null, _): self = .null
        case (.boolean(let value), _): self = .boolean(value)
        case (.integer(let number), .boolean): self = .boolean(number != 0)
        case (.integer(let number), .real): self = .real(Double(number))
        case (.integer(let number), .numeric):
            self = ExactDecimal(String(number)).map { .decimal($0) } ?? .integer(number)
        case (.integer(let number), _): self = .integer(number)
        case (.real(let number), .numeric):
            self = ExactDecimal("\(number)").map { .decimal($0) } ?? .real(number)
        case (.real(let number), _): self = .real(number)
        case (.text(let text), .numeric): self = Self.number(text) ?? .text(text)
        case (.text(let text), _): self = .text(text)
        }
    }
}
