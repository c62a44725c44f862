internal import MartletModel

extension Resolver {
    /// How many sources the queries of one condition may have together.
    static let sourceLimit = 32

    /// Returns a query, and the type of what it selects.
    /// - Parameter needsOutput: Whether it must select one column.
    mutating func query(
        _ query: Query, needsOutput: Bool
    ) throws(RulesFault) -> (ResolvedQuery, RuleType) {
        var scope: [Source] = []
        for source in query.sources {
            guard nextFrame < Self.sourceLimit else {
                throw RulesFault(
                    "a condition reads from more than \(Self.sourceLimit) sources",
                    at: source.type.position)
            }
            let type = try position(of: source.type)
            let alias = (source.alias ?? source.type).name
            if scope.contains(where: { $0.alias.hasSameBytes(as: alias) }) {
                throw RulesFault(
                    "two sources have the name “\(alias)”",
                    at: (source.alias ?? source.type).position,
                    remedy: "give one another name: \(alias) AS other")
            }
            scope.append(Source(alias: alias, type: type, frame: nextFrame))
            nextFrame += 1
        }
        scopes.append(scope)
        defer { scopes.removeLast() }
        var conjuncts: [Node] = []
        for expression in query.conditions {
            conjuncts += Self.conjuncts(of: try condition(expression))
        }
        let (output, type) = try output(of: query, isNeeded: needsOutput)
        let resolved = ResolvedQuery(
            sources: scope.map { ResolvedQuery.Source(type: $0.type, frame: $0.frame) },
            conditions: [], output: output, order: try order(of: query), limit: query.limit)
        return (Self.placed(conjuncts, in: resolved), type)
    }

    /// Returns the position of a type in the schema.
    private func position(of name: NameText) throws(RulesFault) -> Int {
        try Self.position(of: name, in: schema)
    }

    static func position(of name: NameText, in schema: Schema) throws(RulesFault) -> Int {
        if let position = schema.index(of: name.name),
            schema.types[position].name.hasSameBytes(as: name.name)
        {
            return position
        }
        throw RulesFault(
            "the data set has no type “\(name.name)”", at: name.position,
            remedy: "expected one of \(listed(schema.types.map(\.name)))")
    }

    private mutating func output(
        of query: Query, isNeeded: Bool
    ) throws(RulesFault) -> (Node?, RuleType) {
        var outputs: [(Node, RuleType)] = []
        for expression in query.outputs { outputs.append(try resolve(expression)) }
        guard isNeeded else { return (nil, .unknown) }
        guard outputs.count == 1, let first = outputs.first else {
            throw RulesFault(
                "this query must select one column", at: query.position,
                remedy: "write SELECT id FROM …")
        }
        // A text in quotes is a text here.
        return (first.0, first.1 == .unknown ? .text : first.1)
    }

    private mutating func order(of query: Query) throws(RulesFault) -> [ResolvedQuery.Order] {
        if query.limit != nil, query.order.isEmpty, !query.sources.isEmpty {
            throw RulesFault(
                "LIMIT without ORDER BY takes some rows or others", at: query.position,
                remedy: "write ORDER BY before LIMIT")
        }
        var order: [ResolvedQuery.Order] = []
        for part in query.order {
            let operand = try operand(part.value)
            try Self.refuse(operand, isOrder: true)
            let (node, type) = (operand.node, operand.type)
            if case .constant = node {
                throw RulesFault(
                    "a position in ORDER BY is not supported", at: part.value.position,
                    remedy: "write the column")
            }
            if type == .blob {
                throw RulesFault("binary values have no order here", at: part.value.position)
            }
            order.append(
                ResolvedQuery.Order(
                    value: node, isDescending: part.isDescending,
                    nullsFirst: part.nullsFirst ?? part.isDescending))
        }
        return order
    }

    private static func conjuncts(of node: Node) -> [Node] {
        guard case .and(let nodes) = node else { return [node] }
        return nodes.flatMap(conjuncts)
    }

    /// Gives each condition to the first source at which it can be judged, and each source a column
    /// by which its rows are looked up, if a condition says so.
    private static func placed(_ conjuncts: [Node], in query: ResolvedQuery) -> ResolvedQuery {
        var query = query
        guard let first = query.sources.first?.frame else {
            query.conditions = conjuncts
            return query
        }
        let end = first + query.sources.count
        for node in conjuncts {
            guard let frame = node.highestFrame(below: end), frame >= first else {
                query.conditions.append(node)
                continue
            }
            let index = frame - first
            query.sources[index].filters.append(node)
        }
        for index in query.sources.indices { query.sources[index].findLookup() }
        return query
    }
}

extension ResolvedQuery.Source {
    /// Chooses the column by which the rows are looked up, if a filter says so: the key, or else the column
    /// that must equal the user, because he has few rows and they are the same for every row that is
    /// judged, or else the first.
    mutating func findLookup() {
        let found = filters.compactMap { Self.lookup($0, of: frame) }
        lookup =
            found.first { $0.column == 0 }
            ?? found.first { if case .user = $0.value { true } else { false } } ?? found.first
    }

    /// Returns the column of a frame that a condition makes equal to a value of the frames before.
    private static func lookup(_ node: Node, of frame: Int) -> (column: Int, value: Node)? {
        guard case .comparison(.equal, let left, let right) = node else { return nil }
        for (one, other) in [(left, right), (right, left)] {
            guard case .column(frame, let column, let type) = one,
                type == .integer || type == .text,
                other.highestFrame(below: .max).map({ $0 < frame }) ?? true
            else { continue }
            return (column, other)
        }
        return nil
    }
}
