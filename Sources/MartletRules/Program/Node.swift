/// A condition or a value whose names and types are resolved.
///
/// A source of rows is known by its frame: 0 is the row that a policy judges, and each source of
/// each query inside has the next number.
indirect enum Node: Sendable {
    case constant(RuleValue)
    /// A column of a frame's row: 0 is the key, and the attributes follow in the schema's order.
    case column(frame: Int, column: Int, type: RuleType)
    case user
    case role(String)
    case claim(String)
    case today
    case not(Node)
    case and([Node])
    case or([Node])
    case comparison(Comparison, Node, Node)
    case arithmetic(Arithmetic, Node, Node)
    case negative(Node)
    /// `IS NULL` for nil, else `IS TRUE` or `IS FALSE`.
    case test(Node, truth: Bool?)
    case distinct(Node, Node)
    case between(Node, Node, Node)
    case list(Node, [Node])
    case among(Node, ResolvedQuery)
    case like(Node, Node, escape: Node?)
    case exists(ResolvedQuery)
    case scalar(ResolvedQuery)
    case cast(Node, RuleType)
    /// A text in PostgreSQL's form of a UUID.
    case uuid(Node)
    /// An integer that must fit in this many bits.
    case integer(Node, bits: Int)
    /// A value of a setting, which must not be NULL.
    case setting(Node, name: String)
    case coalesce([Node])
    /// The first value, or NULL if it equals the second one.
    case nullIf(Node, Node)

    /// The nodes directly inside, also those of a query inside.
    var children: [Node] {
        switch self {
        case .constant, .column, .user, .role, .claim, .today: []
        case .not(let node), .negative(let node), .test(let node, _), .cast(let node, _),
            .uuid(let node), .integer(let node, _), .setting(let node, _):
            [node]
        case .and(let nodes), .or(let nodes), .coalesce(let nodes): nodes
        case .comparison(_, let left, let right), .arithmetic(_, let left, let right),
            .distinct(let left, let right), .nullIf(let left, let right):
            [left, right]
        case .between(let node, let lower, let upper): [node, lower, upper]
        case .list(let node, let nodes): [node] + nodes
        case .like(let text, let pattern, let escape):
            [text, pattern] + (escape.map { [$0] } ?? [])
        case .among(let node, let query): [node] + query.nodes
        case .exists(let query), .scalar(let query): query.nodes
        }
    }

    /// The queries directly inside.
    var query: ResolvedQuery? {
        switch self {
        case .among(_, let query), .exists(let query), .scalar(let query): query
        default: nil
        }
    }

    /// Calls a closure with this node and all inside.
    func visit(_ body: (Node) -> Void) {
        body(self)
        for child in children { child.visit(body) }
    }

    /// The types whose rows the queries inside read.
    var typesRead: Set<Int> {
        var types: Set<Int> = []
        visit { node in
            for source in node.query?.sources ?? [] { types.insert(source.type) }
        }
        return types
    }

    /// Returns the highest frame below a limit whose row is read; nil if none is.
    func highestFrame(below limit: Int) -> Int? {
        var highest: Int?
        visit { node in
            guard case .column(let frame, _, _) = node, frame < limit else { return }
            highest = max(highest ?? 0, frame)
        }
        return highest
    }
}

/// A query inside a condition. Each source looks its rows up, and drops those that its filters or
/// the policies of its type do not let through.
struct ResolvedQuery: Sendable {
    struct Source: Sendable {
        /// The position of the type in the schema.
        let type: Int
        let frame: Int
        /// The column that must equal a value known from the frames before; nil if all rows are
        /// read.
        var lookup: (column: Int, value: Node)?
        /// The conditions that can be judged once this source has a row.
        var filters: [Node] = []
    }

    struct Order: Sendable {
        let value: Node
        let isDescending: Bool
        let nullsFirst: Bool
    }

    var sources: [Source]
    /// Conditions that read no row of this query.
    var conditions: [Node]
    var output: Node?
    var order: [Order]
    var limit: Int?

    var nodes: [Node] {
        sources.flatMap { source in source.filters + (source.lookup.map { [$0.value] } ?? []) }
            + conditions + (output.map { [$0] } ?? []) + order.map(\.value)
    }
}
