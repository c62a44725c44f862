internal import MartletModel

extension RulesProgram {
    /// How much of a type somebody sees, as far as it can be told without its rows.
    package enum Extent: Hashable, Sendable {
        /// All rows.
        case whole
        case nothing
        /// The rows that the policies show. Everyone with the same text sees the same rows: it has
        /// what the policies ask about the person and the day.
        case judged(String)
    }

    /// Returns how much of a type somebody sees.
    /// - Complexity: O(*n*) in the length of the policies of the type and of those that it reads.
    package func extent(of type: Int, for viewer: Viewer) -> Extent {
        guard mayUse(.select, of: type, roles: viewer.roles),
            unreadableType(readFor: .select, of: type, roles: viewer.roles) == nil
        else { return .nothing }
        guard isSecured[type] else { return .whole }
        let applying = selecting(type).filter { $0.applies(to: .select, viewer.roles) }
        guard applying.contains(where: { $0.isPermissive && $0.using != nil }) else {
            return .nothing
        }
        let isRestricted = applying.contains { !$0.isPermissive && $0.using?.isTrue == false }
        if !isRestricted, applying.contains(where: { $0.isPermissive && $0.using?.isTrue == true })
        {
            return .whole
        }
        return .judged(inputs(of: type, for: viewer))
    }

    /// Whether any condition asks for the day.
    package var asksDay: Bool {
        var asks = false
        for policy in policies.joined() {
            policy.using?.visit { if case .today = $0 { asks = true } }
        }
        return asks
    }

    /// Returns those of some columns that the file names, or whose names it has for anything else. A condition reads
    /// no column that it does not name.
    package func named(among columns: [String]) -> Set<String> {
        var words: Set<String> = []
        var names: Set<ExactName> = []
        for token in (try? Lexer.tokens(of: text)) ?? [] {
            switch token.kind {
            case .word(let word): words.insert(word)
            case .name(let name): names.insert(ExactName(name))
            default: break
            }
        }
        return Set(
            columns.filter { words.contains($0.lowercased()) || names.contains(ExactName($0)) })
    }

    /// Returns the other types whose rows decide whether somebody sees a row of a type.
    package func typesRead(by type: Int) -> Set<Int> {
        var reached: Set<Int> = []
        var open = [type]
        while let next = open.popLast() {
            guard isSecured[next] else { continue }
            for policy in selecting(next) {
                policy.using?.visit { node in
                    for source in node.query?.sources ?? []
                    where reached.insert(source.type).inserted { open.append(source.type) }
                }
            }
        }
        return reached
    }

    /// Returns the types whose rows decide what somebody may do with a row of a type, with the type
    /// itself.
    package func typesJudged(with type: Int) -> Set<Int> {
        var read: Set<Int> = [type]
        for policy in policies[type] {
            for node in [policy.using, policy.check].compactMap(\.self) {
                node.visit { node in
                    for source in node.query?.sources ?? [] {
                        read.insert(source.type)
                        read.formUnion(typesRead(by: source.type))
                    }
                }
            }
        }
        return read
    }

    func selecting(_ type: Int) -> [Policy] {
        policies[type].filter { $0.command == nil || $0.command == .select }
    }

    /// Returns what the policies of a type, and of the types that these read, ask about a viewer.
    private func inputs(of type: Int, for viewer: Viewer) -> String {
        let asked = inputs(of: type)
        var inputs = asked.roles.intersection(viewer.roles).sorted().map { "role \($0)" }
        for name in asked.claims.sorted() {
            if let value = viewer.claims.value(ofExactName: name) {
                inputs += ["claim \(name)", value]
            }
        }
        if asked.user, let user = viewer.user { inputs.append("user \(user)") }
        if asked.day { inputs.append("day \(viewer.today)") }
        // With the lengths, no two lists have the same text.
        return inputs.map { "\($0.utf8.count):\($0)" }.joined(separator: ",")
    }
}

extension Node {
    /// Whether the condition holds for every row and everyone.
    fileprivate var isTrue: Bool {
        if case .constant(.boolean(true)) = self { return true }
        return false
    }
}

extension RulesProgram {
    /// Returns the columns (0 is the key) by whose values the SELECT policies of all types find rows, by
    /// type.
    package func lookupColumns() -> [Int: Set<Int>] {
        var columns: [Int: Set<Int>] = [:]
        func note(_ node: Node) {
            for source in node.query?.sources ?? [] {
                if let lookup = source.lookup {
                    columns[source.type, default: []].insert(lookup.column)
                }
            }
        }
        for type in schema.types.indices where isSecured[type] {
            for policy in selecting(type) {
                policy.using?.visit(note)
                for cover in policy.split?.covers ?? [] {
                    if let key = cover.key { columns[type, default: []].insert(key.column) }
                }
                for input in policy.split?.inputs ?? [] {
                    // Without the column that the row has, a query may look its rows up by another.
                    if case .list(let query, _) = input { Node.exists(query).visit(note) }
                }
            }
        }
        return columns
    }
}
