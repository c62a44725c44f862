package import MartletModel

/// A row that rules judge: the key, then the attributes in the schema's order.
package typealias RuleRow = [Value]

/// The rows that conditions read.
package protocol RuleRows {
    /// Calls a closure with rows of a type.
    /// - Parameters:
    ///   - type: The position of the type in the schema.
    ///   - match: A column (0 is the key) and the integer or text that it must equal; nil for all.
    ///   - body: Takes a row, and returns whether it wants more.
    /// - Throws: What the storage and the closure throw.
    func visit(
        _ type: Int, where match: (column: Int, value: Value)?,
        _ body: (RuleRow) throws -> Bool
    ) throws
}

/// The person for whom rules are judged.
package struct Viewer: Hashable, Sendable {
    /// The user; nil if the token belongs to none.
    package var user: String?
    package var roles: Set<String>
    /// The claims of the token, as texts.
    package var claims: [String: String]
    /// The day of the server, in days since 1970-01-01.
    package var today: Int64

    package init(
        user: String? = nil, roles: Set<String> = [], claims: [String: String] = [:],
        today: Int64 = 0
    ) {
        self.user = user
        self.roles = roles
        self.claims = claims
        self.today = today
    }
}

/// Judges rows by the policies of a rules file, as PostgreSQL would.
///
/// A row for which a value cannot be computed (a division by zero) is not visible and not allowed;
/// PostgreSQL would refuse the whole statement.
package struct RuleEvaluator {
    let program: RulesProgram
    let viewer: Viewer
    let rows: any RuleRows

    package init(_ program: RulesProgram, for viewer: Viewer, over rows: any RuleRows) {
        self.program = program
        self.viewer = viewer
        self.rows = rows
    }

    /// Returns whether the viewer may see a row.
    /// - Throws: What the storage throws.
    package func maySelect(_ row: RuleRow, of type: Int) throws -> Bool {
        try program.mayUse(.select, of: type, roles: viewer.roles)
            && passes(row, of: type, .select, { $0.using })
    }

    /// Returns whether the viewer may create a row, by the privileges of the columns it gives and
    /// the policies. The creator may be unable to see it afterwards.
    /// - Throws: What the storage throws.
    package func mayInsert(_ row: RuleRow, columns: [String], of type: Int) throws -> Bool {
        try program.mayUse(.insert, columns, of: type, roles: viewer.roles)
            && passes(row, of: type, .insert, { $0.check ?? $0.using })
    }

    /// Returns whether the viewer may change a row that he names by its id.
    /// - Parameters:
    ///   - old: The row before.
    ///   - new: The row afterwards, which the viewer must be able to see as well.
    /// - Throws: What the storage throws.
    package func mayUpdate(
        _ old: RuleRow, to new: RuleRow, columns: [String], of type: Int
    ) throws -> Bool {
        try program.mayUse(.update, columns, of: type, roles: viewer.roles)
            && maySelect(old, of: type) && passes(old, of: type, .update, { $0.using })
            && passes(new, of: type, .update, { $0.check ?? $0.using })
            && passes(new, of: type, .select, { $0.using })
    }

    /// Returns whether the viewer may delete a row that he names by its id.
    /// - Throws: What the storage throws.
    package func mayDelete(_ row: RuleRow, of type: Int) throws -> Bool {
        try program.mayUse(.delete, of: type, roles: viewer.roles)
            && maySelect(row, of: type) && passes(row, of: type, .delete, { $0.using })
    }

    /// Returns whether a row passes the policies of a command: one permissive one, and all
    /// restrictive ones. A policy without a condition says nothing.
    private func passes(
        _ row: RuleRow, of type: Int, _ command: PolicyCommand,
        _ condition: (RulesProgram.Policy) -> Node?
    ) throws -> Bool {
        guard program.isSecured[type] else { return true }
        var isPermitted = false
        var restrictions: [Node] = []
        for policy in program.policies[type] where policy.applies(to: command, viewer.roles) {
            guard let node = condition(policy) else { continue }
            if !policy.isPermissive {
                restrictions.append(node)
            } else if !isPermitted {
                isPermitted = try holds(node, for: row)
            }
        }
        return try isPermitted && restrictions.allSatisfy { try holds($0, for: row) }
    }

    private func holds(_ node: Node, for row: RuleRow) throws -> Bool {
        var frames = Frames(evaluator: self, row)
        do {
            return try frames.truth(node) == true
        } catch is RuleValueFault {
            return false
        }
    }
}
