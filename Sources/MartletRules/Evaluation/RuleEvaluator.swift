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
    /// A number that changes when rows do.
    var generation: Int { get }
}

extension RuleRows {
    package var generation: Int { 0 }
}

/// Judges rows by the policies of a rules file, as PostgreSQL would.
///
/// A row for which a value cannot be computed (a division by zero) is not visible and not allowed;
/// PostgreSQL would refuse the whole statement. So is every row of a type whose policies read a type
/// that the viewer may not SELECT.
package struct RuleEvaluator {
    let program: RulesProgram
    let viewer: Viewer
    let rows: any RuleRows
    /// Takes the rows that queries find; nil if nobody asks for them.
    var trace: RuleTrace?
    /// The types that policies read and that the viewer may not SELECT, by the command and the type of
    /// the policies.
    let unreadable: [PolicyCommand: [Int: Int]]
    let selections = RowSelections()

    package init(_ program: RulesProgram, for viewer: Viewer, over rows: any RuleRows) {
        self.program = program
        self.viewer = viewer
        self.rows = rows
        let types = program.schema.types.indices
        var unreadable: [PolicyCommand: [Int: Int]] = [:]
        if !types.allSatisfy({ program.mayUse(.select, of: $0, roles: viewer.roles) }) {
            for command in PolicyCommand.allCases {
                for type in types {
                    unreadable[command, default: [:]][type] = program.unreadableType(
                        readFor: command, of: type, roles: viewer.roles)
                }
            }
        }
        self.unreadable = unreadable
    }

    /// Returns whether the viewer may see a row.
    /// - Throws: What the storage throws.
    package func maySelect(_ row: RuleRow, of type: Int) throws -> Bool {
        try program.mayUse(.select, of: type, roles: viewer.roles)
            && refusal(of: row, of: type, .select, \.using) == nil
    }

    /// Returns why the viewer may not create a row, by the privileges of the columns it gives and
    /// the policies; nil if he may. The creator may be unable to see it afterwards.
    /// - Throws: What the storage throws.
    package func refusalToInsert(
        _ row: RuleRow, columns: [String], of type: Int
    ) throws -> RuleRefusal? {
        try lackedPrivilege(.insert, columns, of: type)
            ?? refusal(of: row, of: type, .insert, { $0.check ?? $0.using })
    }

    /// Returns the columns of a new record for which its author needs the privilege INSERT: those that he
    /// writes, without values that the record gets anyway, and a text key. The server assigns integer keys.
    ///
    /// A device sends new records with the values that defaults gave them.
    package func columnsToInsert(_ attributes: Attributes, of type: Int) -> [String] {
        let type = program.schema.types[type]
        let written = zip(attributes.names, attributes.values).filter { name, value in
            type[attribute: name]?.isDefault(value) != true
        }
        return (type.keyKind == .text ? [type.key] : []) + written.map(\.0)
    }

    /// Returns whether the viewer may create some row, as far as it can be told without its values.
    package func mayInsertSome(of type: Int, columns: [String]) -> Bool {
        guard lackedPrivilege(.insert, columns, of: type) == nil else { return false }
        return !program.isSecured[type]
            || program.policies[type].contains {
                $0.isPermissive && $0.applies(to: .insert, viewer.roles)
                    && ($0.check ?? $0.using) != nil
            }
    }

    /// Returns why the viewer may not change a row that he sees; nil if he may, and only the row
    /// that the change makes has to be judged.
    /// - Throws: What the storage throws.
    package func refusalToUpdate(
        _ old: RuleRow, columns: [String], of type: Int
    ) throws -> RuleRefusal? {
        try lackedPrivilege(.update, columns, of: type)
            ?? refusal(of: old, of: type, .update, \.using)
    }

    /// Returns why the viewer may not leave a row as a change has made it; nil if he may. He must
    /// be able to see it as well.
    /// - Throws: What the storage throws.
    package func refusalToLeave(_ new: RuleRow, of type: Int) throws -> RuleRefusal? {
        try refusal(of: new, of: type, .update, { $0.check ?? $0.using })
            ?? refusal(of: new, of: type, .select, \.using)
    }

    /// Returns why the viewer may not delete a row that he sees; nil if he may.
    /// - Throws: What the storage throws.
    package func refusalToDelete(_ row: RuleRow, of type: Int) throws -> RuleRefusal? {
        try lackedPrivilege(.delete, [], of: type) ?? refusal(of: row, of: type, .delete, \.using)
    }

    /// Returns the privilege that the viewer lacks for a command on these columns; nil if he has it.
    package func lackedPrivilege(
        _ command: PolicyCommand, _ columns: [String], of type: Int
    ) -> RuleRefusal? {
        guard !program.mayUse(command, columns, of: type, roles: viewer.roles) else { return nil }
        let missing = columns.filter {
            !program.mayUse(command, [$0], of: type, roles: viewer.roles)
        }
        let mayUseSome = program.mayUse(command, of: type, roles: viewer.roles)
        return .privilege(command, columns: mayUseSome ? missing : [])
    }

    /// Returns why a row does not pass the policies of a command; nil if one permissive policy lets
    /// it through, and all restrictive ones do. A policy without a condition says nothing.
    private func refusal(
        of row: RuleRow, of type: Int, _ command: PolicyCommand,
        _ condition: (RulesProgram.Policy) -> Node?
    ) throws -> RuleRefusal? {
        guard program.isSecured[type] else { return nil }
        if let read = unreadable[command]?[type] {
            return .unreadable(program.schema.types[read].name)
        }
        var isPermitted = false
        var restrictions: [(name: String, node: Node)] = []
        for policy in program.policies[type] where policy.applies(to: command, viewer.roles) {
            guard let node = condition(policy) else { continue }
            if !policy.isPermissive {
                restrictions.append((policy.name, node))
            } else if !isPermitted {
                isPermitted = try holds(node, for: row)
            }
        }
        guard isPermitted else { return .unpermitted }
        for (name, node) in restrictions where try !holds(node, for: row) {
            return .restricted(by: name)
        }
        return nil
    }

    private func holds(_ node: Node, for row: RuleRow) throws -> Bool {
        var frames = Frames(evaluator: self, row)
        let mark = trace?.rows.count ?? 0
        do {
            if try frames.truth(node) == true { return true }
        } catch is RuleValueFault {}
        trace?.takeBack(to: mark)
        return false
    }
}

/// The reason why policies or privileges do not allow an operation.
package enum RuleRefusal: Hashable, Sendable {
    /// No GRANT gives the privilege: for these columns, or for the whole type if there are none.
    case privilege(PolicyCommand, columns: [String])
    /// The policies read this type, and no GRANT gives SELECT on it.
    case unreadable(String)
    /// No permissive policy lets the row through.
    case unpermitted
    /// A restrictive policy does not let the row through.
    case restricted(by: String)
}
