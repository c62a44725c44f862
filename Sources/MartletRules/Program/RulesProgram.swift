package import MartletModel

/// The policies and privileges of a rules file, resolved against a schema.
///
/// The semantics are those of PostgreSQL's row-level security (CREATE POLICY, PostgreSQL 15). Every
/// type is under row-level security, unless `ALTER TABLE … DISABLE ROW LEVEL SECURITY` lifts it: a
/// type without a policy shows nobody a row. Everyone has all privileges on a type that no GRANT
/// names.
///
/// ```swift
/// let program = try RulesProgram("CREATE POLICY own ON notes USING (owner = martlet_user())",
///     schema: schema)
/// ```
package struct RulesProgram: Sendable {
    /// A policy of one type.
    package struct Policy: Sendable {
        /// Its name, unique in its type.
        package let name: String
        /// The line of the file on which it begins.
        package let line: Int
        package let isPermissive: Bool
        /// The command to which it applies; nil for all.
        package let command: PolicyCommand?
        /// The roles to which it applies; empty for everyone.
        package let roles: NameSet
        let using: Node?
        let check: Node?
        /// The types whose rows `using` and `check` read.
        let usingTypes: Set<Int>
        let checkTypes: Set<Int>
        /// The parts of `using` and `check`, for explanations.
        let usingParts: [ConditionPart]
        let checkParts: [ConditionPart]
        /// The parts of `using` that depend on the person alone; nil if there is no condition.
        let split: ConditionSplit?

        func applies(to command: PolicyCommand, _ roles: NameSet) -> Bool {
            (self.command == nil || self.command == command)
                && (self.roles.isEmpty || !self.roles.isDisjoint(with: roles))
        }
    }

    /// A part of a condition: one of those that OR or AND joins at its top, or else all of it.
    struct ConditionPart: Sendable {
        let text: String
        let line: Int
        let node: Node
    }

    /// The privileges of a role on a type.
    struct Privileges: Sendable {
        /// The commands, for all columns.
        var commands: Set<PolicyCommand> = []
        /// The columns that INSERT and UPDATE may write, if they may not write all.
        var columns: [PolicyCommand: NameSet] = [:]
    }

    package let schema: Schema
    /// The rules file.
    package let text: String
    /// The characters of the file.
    let scalars: [Unicode.Scalar]
    /// The canonical texts of UUIDs, by the positions at which the file has them.
    private(set) var canonicalTexts: [Int: String] = [:]
    /// The policies of each type, in the schema's order.
    package private(set) var policies: [[Policy]]
    /// Whether a type is under row-level security, in the schema's order.
    package private(set) var isSecured: [Bool]
    /// The privileges of each type by role; nil stands for PUBLIC.
    private(set) var privileges: [[ExactName?: Privileges]]

    /// Reads a rules file.
    /// - Throws: `RulesFault`, with the line and the column, for what cannot be used.
    package init(_ text: String, schema: Schema) throws(RulesFault) {
        self.schema = schema
        self.text = text
        scalars = Array(text.unicodeScalars)
        policies = Array(repeating: [], count: schema.types.count)
        isSecured = Array(repeating: true, count: schema.types.count)
        privileges = Array(repeating: [:], count: schema.types.count)
        let statements = try StatementReader.statements(of: text)
        try grantAll(statements)
        for statement in statements {
            switch statement.content {
            case .createPolicy(let policy): try add(policy)
            case .privileges(let privileges): try change(privileges)
            case .rowSecurity(let type, let isEnabled):
                let position = try Resolver.position(of: type, in: schema)
                if let isEnabled { isSecured[position] = isEnabled }
            }
        }
        try PolicyCycles(self).refuse(statements)
    }

    /// Reads one condition of a policy on a type.
    /// - Throws: `RulesFault`, with the line and the column in the condition.
    package static func check(
        condition: String, of type: Int, schema: Schema
    ) throws(RulesFault) {
        var reader = ExpressionReader(TokenReader(try Lexer.tokens(of: condition)))
        let expression = try reader.expression()
        guard reader.tokens.isAtEnd else { throw reader.tokens.unexpected("an operator") }
        var resolver = Resolver(schema, type: type)
        _ = try resolver.condition(expression)
    }

    /// Returns a condition in which texts in quotes have no casts to some types.
    /// - Parameter types: The types as they are written in the condition: enumerations, whose values
    ///   are texts here.
    /// - Throws: `RulesFault` for what no condition may contain.
    package static func droppingCasts(
        of condition: String, to types: Set<String>
    ) throws(RulesFault) -> String {
        let tokens = try Lexer.tokens(of: condition)
        let scalars = Array(condition.unicodeScalars)
        func text(_ range: Range<Int>) -> String {
            String(String.UnicodeScalarView(scalars[range]))
        }
        var plain = ""
        var copied = 0
        for (index, token) in tokens.enumerated().dropFirst() where token.isSign("::") {
            guard tokens[index - 1].isText else { continue }
            // A type's name, or a schema, a point and the name.
            for length in [3, 1] where index + length < tokens.count {
                let name =
                    tokens[index + 1].position.offset..<tokens[index + length].end.offset
                guard types.contains(text(name)) else { continue }
                plain += text(copied..<token.position.offset)
                copied = name.upperBound
                break
            }
        }
        return plain + text(copied..<scalars.count)
    }

    /// Whether nobody can see a row of any type: the file has no policy and lifts row-level security
    /// for no type.
    package var showsNothing: Bool {
        policies.allSatisfy(\.isEmpty) && isSecured.allSatisfy(\.self)
    }

    /// The types that show nobody a row, because they have no policy and row-level security is not
    /// lifted for them.
    package var typesWithoutPolicies: [String] {
        schema.types.indices.filter { isSecured[$0] && policies[$0].isEmpty }
            .map { schema.types[$0].name }
    }

    /// The text to write for a type without policies.
    package static func remedy(forTypeWithoutPolicies name: String) -> String {
        let name = name.quotedForSQL
        return """
            write CREATE POLICY … ON \(name) …, or ALTER TABLE \(name) DISABLE ROW LEVEL SECURITY to show \
            everyone all rows, or CREATE POLICY none ON \(name) USING (false) to show nobody any
            """
    }

    /// Gives everyone everything on types that no GRANT names.
    private mutating func grantAll(_ statements: [Statement]) throws(RulesFault) {
        var named: Set<Int> = []
        for statement in statements {
            guard case .privileges(let text) = statement.content, text.isGrant else { continue }
            for position in try positions(text.types) { named.insert(position) }
        }
        for position in schema.types.indices where !named.contains(position) {
            privileges[position][nil] = Privileges(commands: Set(PolicyCommand.allCases))
        }
    }

    private func positions(_ types: [NameText]?) throws(RulesFault) -> [Int] {
        guard let types else { return Array(schema.types.indices) }
        return try types.map { (type) throws(RulesFault) in
            try Resolver.position(of: type, in: schema)
        }
    }

    private mutating func add(_ text: PolicyText) throws(RulesFault) {
        let position = try Resolver.position(of: text.type, in: schema)
        if let other = policies[position].first(where: { $0.name.hasSameBytes(as: text.name.name) })
        {
            throw RulesFault(
                "“\(text.type.name)” has a policy “\(other.name)” already, on line \(other.line)",
                at: text.name.position, remedy: "give it another name")
        }
        let using = try condition(text.using, of: position)
        let check = try condition(text.check, of: position)
        policies[position].append(
            Policy(
                name: text.name.name, line: text.name.position.line,
                isPermissive: text.isPermissive, command: text.command,
                roles: NameSet(text.roles.map(\.name)), using: using?.node, check: check?.node,
                usingTypes: using?.node.typesRead ?? [], checkTypes: check?.node.typesRead ?? [],
                usingParts: using?.parts ?? [], checkParts: check?.parts ?? [],
                split: using.map { ConditionSplit($0.node) }))
    }

    /// Returns a condition, and its parts.
    private mutating func condition(
        _ text: ConditionText?, of type: Int
    ) throws(RulesFault) -> (node: Node, parts: [ConditionPart])? {
        guard let text, let first = text.parts.first, let last = text.parts.last else {
            return nil
        }
        var resolver = Resolver(schema, type: type)
        let node = try resolver.condition(text.expression)
        canonicalTexts.merge(resolver.canonicalTexts) { $1 }
        let nodes: [Node] =
            switch node {
            case .or(let joined), .and(let joined): joined
            default: [node]
            }
        // Brackets around all of the condition hide its parts.
        guard nodes.count == text.parts.count else {
            let whole = TextSpan(start: first.start, end: last.end)
            return (node, [part(whole, node)])
        }
        return (node, zip(text.parts, nodes).map(part))
    }

    private func part(_ span: TextSpan, _ node: Node) -> ConditionPart {
        ConditionPart(text: span.text(in: scalars), line: span.start.line, node: node)
    }

    private mutating func change(_ text: PrivilegeText) throws(RulesFault) {
        let roles: [ExactName?] =
            text.roles.isEmpty ? [nil] : text.roles.map { ExactName($0.name) }
        for position in try positions(text.types) {
            let type = schema.types[position]
            for column in text.privileges?.flatMap({ $0.columns ?? [] }) ?? [] {
                guard !column.name.hasSameBytes(as: type.key),
                    Resolver.attribute(column.name, of: type) == nil
                else { continue }
                throw RulesFault(
                    "“\(type.name)” has no column “\(column.name)”", at: column.position,
                    remedy: "expected one of \(Resolver.listed(type.attributes.map(\.name)))")
            }
            for role in roles { change(text, position, role) }
        }
    }

    private mutating func change(_ text: PrivilegeText, _ position: Int, _ role: ExactName?) {
        let all = PolicyCommand.allCases.map {
            PrivilegeText.Privilege(command: $0, columns: nil)
        }
        var held = privileges[position][role] ?? Privileges()
        for privilege in text.privileges ?? all {
            let columns = NameSet((privilege.columns ?? []).map(\.name))
            switch (text.isGrant, privilege.columns == nil) {
            case (true, true): held.commands.insert(privilege.command)
            case (true, false): held.columns[privilege.command, default: []].formUnion(columns)
            // As in PostgreSQL, this takes the privileges on columns as well.
            case (false, true):
                held.commands.remove(privilege.command)
                held.columns[privilege.command] = nil
            // A privilege on the whole type stays.
            case (false, false): held.columns[privilege.command]?.subtract(columns)
            }
        }
        privileges[position][role] = held
    }
}

extension RulesProgram {
    /// Returns a type that the policies of a command read, and that somebody with these roles may not
    /// SELECT; nil if there is none.
    ///
    /// PostgreSQL refuses a statement with such policies, whatever rows there are.
    func unreadableType(
        readFor command: PolicyCommand, of type: Int, roles: NameSet
    ) -> Int? {
        guard isSecured[type] else { return nil }
        var open = typesRead(for: command, of: type, roles)
        var reached = Set(open)
        while let next = open.popLast() {
            guard mayUse(.select, of: next, roles: roles) else { return next }
            guard isSecured[next] else { continue }
            for type in typesRead(for: .select, of: next, roles)
            where reached.insert(type).inserted { open.append(type) }
        }
        return nil
    }

    /// Returns the types that the policies of a command read, for somebody with these roles.
    private func typesRead(
        for command: PolicyCommand, of type: Int, _ roles: NameSet
    ) -> [Int] {
        let applying = policies[type].filter { $0.applies(to: command, roles) }
        func read(_ types: (Policy) -> Set<Int>?) -> Set<Int> {
            let known = applying.compactMap { policy in types(policy).map { (policy, $0) } }
            // Without a permissive policy nobody needs the restrictive ones.
            guard known.contains(where: \.0.isPermissive) else { return [] }
            return known.reduce(into: []) { $0.formUnion($1.1) }
        }
        let old = command == .insert ? [] : read { $0.using == nil ? nil : $0.usingTypes }
        guard command == .insert || command == .update else { return old.sorted() }
        let new = read {
            $0.check != nil ? $0.checkTypes : $0.using == nil ? nil : $0.usingTypes
        }
        return old.union(new).sorted()
    }

    /// Returns whether somebody with these roles may do a command on some columns of a type.
    /// - Parameters:
    ///   - columns: The columns that INSERT or UPDATE writes.
    ///   - type: The position of the type in the schema.
    package func mayUse(
        _ command: PolicyCommand, _ columns: [String] = [], of type: Int, roles: NameSet
    ) -> Bool {
        let held = privileges[type].filter { role, _ in
            role.map { roles.contains($0.text) } ?? true
        }.values
        if held.contains(where: { $0.commands.contains(command) }) { return true }
        let allowed = held.compactMap { $0.columns[command] }.reduce(into: NameSet()) {
            $0.formUnion($1)
        }
        return !allowed.isEmpty && columns.allSatisfy(allowed.contains)
    }
}

extension String {
    /// The name in quotes.
    fileprivate var quotedForSQL: String { "\"\(replacing("\"", with: "\"\""))\"" }
}
