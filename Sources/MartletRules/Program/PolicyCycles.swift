internal import MartletModel

/// Finds policies that lead back to their own type without end (PostgreSQL's 42P17).
///
/// The rows that a policy reads obey the SELECT policies of their types, and so do the rows that
/// these read. A policy may read its own type if the SELECT policies of that type read nothing: a
/// policy FOR INSERT that looks for another row, say. For this, PostgreSQL counts what a policy FOR
/// ALL reads in its WITH CHECK, too.
struct PolicyCycles {
    /// The types whose rows the SELECT policies of a type read.
    private let selected: [Set<Int>]
    /// Whether the policies of a type that apply to SELECT read anything.
    private let reads: [Bool]
    private let program: RulesProgram

    init(_ program: RulesProgram) {
        self.program = program
        let policies = program.policies.enumerated().map { type, policies in
            program.isSecured[type]
                ? policies.filter { $0.command == nil || $0.command == .select } : []
        }
        selected = policies.map { $0.reduce(into: Set()) { $0.formUnion($1.usingTypes) } }
        reads = policies.map { $0.contains { !$0.usingTypes.union($0.checkTypes).isEmpty } }
    }

    /// - Throws: `RulesFault` at the first policy that leads back to its type.
    func refuse(_ statements: [Statement]) throws(RulesFault) {
        for statement in statements {
            guard case .createPolicy(let text) = statement.content,
                let type = program.schema.index(of: text.type.name), program.isSecured[type],
                reads[type],
                let policy = program.policies[type].first(where: {
                    $0.name.hasSameBytes(as: text.name.name)
                })
            else { continue }
            var reached = policy.usingTypes.union(policy.checkTypes)
            var open = Array(reached)
            while let next = open.popLast() {
                for type in selected[next] where reached.insert(type).inserted {
                    open.append(type)
                }
            }
            guard reached.contains(type) else { continue }
            throw RulesFault(
                "the policies of “\(text.type.name)” read “\(text.type.name)” again, without end",
                at: text.name.position,
                remedy: "read a type whose policies do not lead back here")
        }
    }
}
