internal import MartletModel

/// Finds policies that read, by way of other types, their own type again (PostgreSQL's 42P17).
struct PolicyCycles {
    /// The types whose rows the policies of a type read.
    private let reads: [Set<Int>]
    private let program: RulesProgram

    init(_ program: RulesProgram) {
        self.program = program
        reads = program.policies.enumerated().map { type, policies in
            guard program.isSecured[type] else { return [] }
            let read = policies.flatMap { [$0.using, $0.check] }.compactMap(\.self)
            return read.reduce(into: Set()) { types, node in
                node.visit { node in
                    for source in node.query?.sources ?? [] { types.insert(source.type) }
                }
            }
        }
    }

    /// - Throws: `RulesFault` at the first policy that leads back to its type.
    func refuse(_ statements: [Statement]) throws(RulesFault) {
        for statement in statements {
            guard case .createPolicy(let policy) = statement.content,
                let type = program.schema.index(of: policy.type.name), program.isSecured[type]
            else { continue }
            var reached = reads[type]
            var open = Array(reached)
            while let next = open.popLast() {
                for type in reads[next] where reached.insert(type).inserted { open.append(type) }
            }
            guard reached.contains(type) else { continue }
            throw RulesFault(
                "the policies of “\(policy.type.name)” read “\(policy.type.name)” again, without end",
                at: policy.name.position,
                remedy: "read a type whose policies do not lead back here")
        }
    }
}
