package import MartletModel

extension RulesProgram {
    /// A type whose rows a policy reads.
    package struct SourceSummary: Hashable, Sendable {
        /// The type's name.
        package let type: String
        /// The column by which its rows are looked up; nil if all rows are read.
        package let column: String?
    }

    /// Returns the types that a policy reads besides its own row, in the order of its text.
    package func sources(of policy: Policy) -> [SourceSummary] {
        var found: [SourceSummary] = []
        for node in [policy.using, policy.check].compactMap(\.self) {
            node.visit { node in
                for source in node.query?.sources ?? [] {
                    let type = schema.types[source.type]
                    let summary = SourceSummary(
                        type: type.name, column: source.lookup.map { type.column($0.column) })
                    if !found.contains(summary) { found.append(summary) }
                }
            }
        }
        return found
    }
}

// MARK: - Rows

/// How the rows of a type are found that somebody may see.
package struct RowFindingSummary: Hashable, Sendable {
    /// The columns by whose values the rows are found, in the schema's order.
    package let columns: [String]
    /// The policies that name no such column, so that each row is judged for each person.
    package let judgingEach: [String]
    /// The types of queries that read the row in another way than by one equal column. After each of their
    /// changes all found rows are judged again.
    package let readByRow: [String]
}

extension RulesProgram {
    /// Returns how the rows of a type are found that somebody may see.
    package func rowFinding(of type: Int) -> RowFindingSummary {
        var columns: Set<Int> = []
        var judgingEach: [String] = []
        var readByRow: Set<Int> = []
        for policy in selecting(type) {
            readByRow.formUnion(policy.split?.typesReadByRow ?? [])
            guard policy.isPermissive, let covers = policy.split?.covers else { continue }
            columns.formUnion(covers.compactMap(\.key?.column))
            if covers.contains(where: { $0.key == nil && !$0.isOfPersonAlone }) {
                judgingEach.append(policy.name)
            }
        }
        return RowFindingSummary(
            columns: columns.sorted().map { schema.types[type].column($0) },
            judgingEach: judgingEach,
            readByRow: readByRow.sorted().map { schema.types[$0].name })
    }
}

// MARK: - People

/// The facts about a person and the day that policies ask for. People with equal facts see the same
/// rows.
package struct ViewerInputs: Hashable, Sendable {
    package var user: Bool
    package var day: Bool
    package var roles: NameSet
    package var claims: NameSet

    package init(
        user: Bool = false, day: Bool = false, roles: NameSet = [], claims: NameSet = []
    ) {
        self.user = user
        self.day = day
        self.roles = roles
        self.claims = claims
    }

    /// Adds what a condition asks.
    fileprivate mutating func add(_ condition: Node?) {
        condition?.visit { node in
            switch node {
            case .user: user = true
            case .today: day = true
            case .role(let role): roles.insert(role)
            case .claim(let name): claims.insert(name)
            default: break
            }
        }
    }
}

extension RulesProgram {
    /// Returns what a policy's own text asks about a person.
    package func inputs(of policy: Policy) -> ViewerInputs {
        var inputs = ViewerInputs()
        inputs.add(policy.using)
        inputs.add(policy.check)
        return inputs
    }

    /// Returns what decides which rows of a type a person sees, besides the rows: what is asked by
    /// the policies of the type, and of the types that these read.
    package func inputs(of type: Int) -> ViewerInputs {
        var inputs = ViewerInputs()
        for read in typesRead(by: type).union([type]) {
            inputs.roles.formUnion(NameSet(privileges[read].keys.compactMap { $0?.text }))
            for policy in isSecured[read] ? selecting(read) : [] {
                inputs.roles.formUnion(policy.roles)
                inputs.add(policy.using)
            }
        }
        return inputs
    }
}

extension EntityType {
    /// The name of a column: 0 is the key, and the attributes follow.
    fileprivate func column(_ index: Int) -> String {
        index == 0 ? key : attributes[index - 1].name
    }
}
