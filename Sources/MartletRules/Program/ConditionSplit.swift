internal import MartletModel

/// A condition of a policy, split into the parts that depend on the person alone and those that depend
/// on the row.
///
/// A *cover* names a column and the values that it has in the rows for which the condition may hold:
/// `team_id IN (SELECT team_id FROM members WHERE person = martlet_user())` has the one cover `team_id`.
struct ConditionSplit: Sendable {
    /// A part that the person alone decides, together with rows of other types.
    enum Input: Sendable {
        case value(Node)
        /// The values of a query. If the condition only asks whether a column is among them, this
        /// is the column.
        case list(ResolvedQuery, column: Int?)
    }

    /// The rows for which a condition, or a part of it that OR joins, may hold.
    struct Cover: Sendable {
        /// Conditions on the person alone. If one does not hold, there are no rows.
        var gates: [Node] = []
        /// The column, and its values; nil if any row may be among them.
        var key: (column: Int, values: Values)?
        /// True if the condition does not read the row, so that somebody sees all rows by it, or none.
        var isOfPersonAlone = false

        enum Values: Sendable {
            case node(Node)
            case input(Int)
        }
    }

    private(set) var inputs: [Input] = []
    private(set) var covers: [Cover] = []
    /// The types of queries that read the row in a way that cannot be split. Their changes may concern any
    /// row.
    private(set) var typesReadByRow: Set<Int> = []

    init(_ condition: Node) { covers = split(condition) }

    /// Notes a condition's inputs, and returns its covers.
    private mutating func split(_ node: Node) -> [Cover] {
        guard node.readsRow else {
            note(node)
            return [Cover(gates: [node], isOfPersonAlone: true)]
        }
        switch node {
        case .or(let nodes): return nodes.flatMap { split($0) }
        case .and(let nodes):
            var gates: [Node] = []
            var best: [Cover]?
            for node in nodes {
                let covers = split(node)
                if !node.readsRow {
                    gates.append(node)
                } else if best == nil, covers.allSatisfy({ $0.key != nil }) {
                    best = covers
                }
            }
            return (best ?? [Cover()]).map { Cover(gates: gates + $0.gates, key: $0.key) }
        case .comparison(.equal, let left, let right):
            for (one, other) in [(left, right), (right, left)] where !other.readsRow {
                guard let column = one.keyColumn else { continue }
                note(other)
                return [Cover(key: (column, .node(other)))]
            }
        case .list(let value, let members) where !members.contains(where: \.readsRow):
            guard let column = value.keyColumn else { break }
            for member in members { note(member) }
            return members.map { Cover(key: (column, .node($0))) }
        case .among(let value, let query):
            guard let column = value.keyColumn, !query.readsRow else { break }
            return [cover(column, query)]
        case .exists(let query):
            guard let (list, column) = query.list else { break }
            return [cover(column, list)]
        default: break
        }
        note(node)
        return [Cover()]
    }

    private mutating func cover(_ column: Int, _ query: ResolvedQuery) -> Cover {
        inputs.append(.list(query, column: column))
        return Cover(key: (column, .input(inputs.count - 1)))
    }

    /// Notes the inputs of a condition, or of a value, that has no covers.
    private mutating func note(_ node: Node) {
        guard node.readsRow else {
            var hasQuery = false
            node.visit { if $0.query != nil { hasQuery = true } }
            if hasQuery { inputs.append(.value(node)) }
            return
        }
        switch node {
        case .among(let value, let query) where !query.readsRow:
            note(value)
            inputs.append(.list(query, column: value.keyColumn))
        case .exists(let query):
            if let (list, column) = query.list {
                inputs.append(.list(list, column: column))
            } else {
                noteByRow(node)
            }
        case .among, .scalar: noteByRow(node)
        default: for child in node.children { note(child) }
        }
    }

    private mutating func noteByRow(_ node: Node) {
        node.visit { node in
            for source in node.query?.sources ?? [] { typesReadByRow.insert(source.type) }
        }
    }
}

extension Node {
    /// True if it reads the row that the policy judges.
    fileprivate var readsRow: Bool {
        var reads = false
        visit { if case .column(frame: 0, _, _) = $0 { reads = true } }
        return reads
    }

    /// The column of the judged row that this is, if its values can be looked up.
    fileprivate var keyColumn: Int? {
        guard case .column(frame: 0, let column, let type) = self,
            type == .integer || type == .text
        else { return nil }
        return column
    }
}

extension ResolvedQuery {
    fileprivate var readsRow: Bool { nodes.contains(where: \.readsRow) }

    /// The query of `EXISTS` as a list of values, and the column of the judged row that has to be among
    /// them; nil if the query reads the row in another way.
    fileprivate var list: (query: ResolvedQuery, column: Int)? {
        guard limit == nil else { return nil }
        var list = self
        list.order = []
        for (index, source) in sources.enumerated() {
            for (position, filter) in source.filters.enumerated() {
                guard case .comparison(.equal, let left, let right) = filter else { continue }
                for (one, other) in [(left, right), (right, left)] {
                    guard let column = one.keyColumn,
                        case .column(let frame, _, let type) = other, frame > 0,
                        type == .integer || type == .text
                    else { continue }
                    list.sources[index].filters.remove(at: position)
                    list.sources[index].findLookup()
                    list.output = other
                    return list.readsRow ? nil : (list, column)
                }
            }
        }
        return nil
    }
}
