package import MartletModel

/// How a policy judges a row for somebody.
package struct PolicyFinding: Hashable, Sendable {
    /// The result of a condition.
    package enum Outcome: Hashable, Sendable {
        case holds
        case fails
        /// It is NULL, which does not let a row through.
        case unknown
        /// A value cannot be computed, for this reason.
        case fault(String)
    }

    /// A part of a policy's condition.
    package struct Part: Hashable, Sendable {
        /// The part as the rules file has it, in one line.
        package let text: String
        /// The line of the rules file on which it begins.
        package let line: Int
        package let outcome: Outcome
        /// The rows of queries that make it hold.
        package let rows: [FoundRow]
    }

    /// A row that a query of a condition found.
    package struct FoundRow: Hashable, Sendable {
        package let type: String
        package let id: RecordID
    }

    package let name: String
    /// The line of the rules file on which the policy begins.
    package let line: Int
    package let isPermissive: Bool
    /// The roles to which the policy applies; empty for everyone.
    package let roles: [String]
    /// The result of the condition; nil if the policy is for other roles.
    package let outcome: Outcome?
    /// The parts of the condition that OR or AND joins, as far as they were needed: OR ends at the
    /// first that holds, AND at the first that fails.
    package let parts: [Part]
}

/// Whether somebody may see a row, and why.
package struct RowJudgement: Hashable, Sendable {
    package enum Basis: Hashable, Sendable {
        /// No GRANT gives the person SELECT.
        case privilege
        /// The type is not under row-level security.
        case unsecured
        case policies
        /// The policies read this type, and no GRANT gives the person SELECT on it.
        case unreadable(String)
    }

    package let isShown: Bool
    package let basis: Basis
    /// The policies for SELECT, in the order of the rules file.
    package let policies: [PolicyFinding]

    /// The reasons in words: the policies that let the row through, or those that do not.
    package var reasons: [String] {
        switch basis {
        case .privilege: return ["no GRANT gives this person SELECT on the type"]
        case .unsecured: return ["the type is not under row-level security"]
        case .unreadable(let read):
            return [
                "the policies read “\(read)”, and no GRANT gives this person SELECT on it"
            ]
        case .policies: break
        }
        guard !policies.isEmpty else { return ["the type has no policy for SELECT"] }
        let isPermitted = policies.contains { $0.isPermissive && $0.outcome == .holds }
        return policies.filter { policy in
            if isShown { return policy.outcome == .holds }
            return isPermitted
                ? !policy.isPermissive && policy.outcome != nil && policy.outcome != .holds
                : policy.isPermissive
        }.map(\.description)
    }
}

extension RuleEvaluator {
    /// Returns whether the viewer may see a row, and why.
    /// - Throws: What the storage throws.
    package func judgement(of row: RuleRow, type: Int) throws -> RowJudgement {
        let mayUse = program.mayUse(.select, of: type, roles: viewer.roles)
        let read = unreadable[.select]?[type].map { program.schema.types[$0].name }
        return RowJudgement(
            isShown: try maySelect(row, of: type),
            basis: !mayUse
                ? .privilege
                : read.map { .unreadable($0) }
                    ?? (program.isSecured[type] ? .policies : .unsecured),
            policies: try findings(.select, row, of: type))
    }

    /// Returns how each policy of a command judges a row. `maySelect` and the refusals say what
    /// follows from all of them.
    ///
    /// - Parameter isNew: Whether the row is one that the command makes.
    /// - Throws: What the storage throws.
    package func findings(
        _ command: PolicyCommand, _ row: RuleRow, of type: Int, isNew: Bool = false
    ) throws -> [PolicyFinding] {
        guard program.isSecured[type] else { return [] }
        var findings: [PolicyFinding] = []
        for policy in program.policies[type]
        where policy.command == nil || policy.command == command {
            let takesCheck = isNew && policy.check != nil
            guard let node = takesCheck ? policy.check : policy.using else { continue }
            let applies = policy.applies(to: command, viewer.roles)
            let parts = takesCheck ? policy.checkParts : policy.usingParts
            findings.append(
                PolicyFinding(
                    name: policy.name, line: policy.line, isPermissive: policy.isPermissive,
                    roles: policy.roles.sorted(),
                    outcome: applies ? try outcome(of: node, for: row).outcome : nil,
                    parts: applies ? try judged(parts, of: node, for: row) : []))
        }
        return findings
    }

    private func judged(
        _ parts: [RulesProgram.ConditionPart], of condition: Node, for row: RuleRow
    ) throws -> [PolicyFinding.Part] {
        var judged: [PolicyFinding.Part] = []
        for part in parts {
            let (outcome, rows) = try outcome(of: part.node, for: row)
            judged.append(
                PolicyFinding.Part(
                    text: part.text.split(whereSeparator: \.isWhitespace).joined(separator: " "),
                    line: part.line, outcome: outcome, rows: outcome == .holds ? rows : []))
            switch (condition, outcome) {
            case (.or, .holds), (.and, .fails), (_, .fault): return judged
            default: break
            }
        }
        return judged
    }

    private func outcome(
        of node: Node, for row: RuleRow
    ) throws -> (outcome: PolicyFinding.Outcome, rows: [PolicyFinding.FoundRow]) {
        let trace = RuleTrace()
        var tracing = self
        tracing.trace = trace
        var frames = Frames(evaluator: tracing, row)
        do {
            switch try frames.truth(node) {
            case true: return (.holds, found(trace))
            case false: return (.fails, [])
            case nil: return (.unknown, [])
            }
        } catch let fault as RuleValueFault {
            return (.fault(fault.description), [])
        }
    }

    /// Returns the rows of a trace, each once.
    private func found(_ trace: RuleTrace) -> [PolicyFinding.FoundRow] {
        var rows: [PolicyFinding.FoundRow] = []
        for found in trace.rows {
            guard let id = RecordID(found.row[0]) else { continue }
            let row = PolicyFinding.FoundRow(type: program.schema.types[found.type].name, id: id)
            if !rows.contains(row) { rows.append(row) }
        }
        return rows
    }
}

extension PolicyFinding: CustomStringConvertible {
    package var description: String {
        let name = isPermissive ? "policy “\(name)”" : "restrictive policy “\(name)”"
        let start = "\(name) (line \(line))"
        guard let outcome else { return "\(start) is for \(roles.joined(separator: ", "))" }
        let parts = parts.filter { outcome != .holds || $0.outcome == .holds }
        let reasons = parts.map(\.description).joined(separator: "; ")
        let verb = outcome == .holds ? "lets it through" : "does not let it through"
        return "\(start) \(verb): \(reasons)"
    }
}

extension PolicyFinding.Part: CustomStringConvertible {
    package var description: String {
        switch outcome {
        case .holds:
            let rows = rows.map { "\($0.type) \($0.id)" }.joined(separator: ", ")
            return rows.isEmpty ? text : "\(text), through \(rows)"
        case .fails: return "\(text) does not hold"
        case .unknown: return "\(text) is NULL"
        case .fault(let reason): return "\(text) cannot be computed, because \(reason)"
        }
    }
}
