/// Reads a rules file: `CREATE POLICY`, `GRANT`, `REVOKE` and `ALTER TABLE … ROW LEVEL SECURITY`.
struct StatementReader {
    private var tokens: TokenReader

    /// Returns the statements of a text.
    /// - Throws: `RulesFault` for what is no statement of a rules file.
    static func statements(of text: String) throws(RulesFault) -> [Statement] {
        var reader = StatementReader(tokens: TokenReader(try Lexer.tokens(of: text)))
        var statements: [Statement] = []
        while true {
            while reader.tokens.skipSign(";") {}
            if reader.tokens.isAtEnd { return statements }
            let first = reader.tokens.index
            var statement = try reader.statement()
            statement.tokens = first..<reader.tokens.index
            statements.append(statement)
            guard reader.tokens.isAtEnd || reader.tokens.current.isSign(";") else {
                throw reader.tokens.unexpected("“;”")
            }
        }
    }

    private mutating func statement() throws(RulesFault) -> Statement {
        let position = tokens.position
        if tokens.skip("create") {
            guard tokens.skip("policy") else { throw onlyStatements(position) }
            return Statement(position: position, content: .createPolicy(try policy()))
        }
        if tokens.skip("grant") {
            return Statement(position: position, content: try privileges(true))
        }
        if tokens.skip("revoke") {
            return Statement(position: position, content: try privileges(false))
        }
        if tokens.skip("alter") { return try alterTable(position) }
        throw onlyStatements(position)
    }

    private func onlyStatements(_ position: TextPosition) -> RulesFault {
        RulesFault(
            "this is no statement of a rules file", at: position,
            remedy: "expected CREATE POLICY, GRANT, REVOKE or ALTER TABLE … ROW LEVEL SECURITY")
    }

    private mutating func condition() throws(RulesFault) -> ConditionText {
        try tokens.expectSign("(")
        let start = tokens.index
        var reader = ExpressionReader(tokens)
        let expression = try reader.expression()
        tokens = reader.tokens
        let parts = ConditionParts.spans(of: tokens.tokens(from: start, to: tokens.index))
        try tokens.expectSign(")")
        return ConditionText(expression: expression, parts: parts)
    }

    private mutating func type() throws(RulesFault) -> NameText {
        var reader = ExpressionReader(tokens)
        let type = try reader.typeReference()
        tokens = reader.tokens
        return type
    }

    private mutating func policy() throws(RulesFault) -> PolicyText {
        let name = try tokens.name("the policy's name")
        try tokens.expect("on")
        var policy = PolicyText(name: name, type: try type())
        if tokens.skip("as") {
            policy.isPermissive = tokens.skip("permissive")
            if !policy.isPermissive, !tokens.skip("restrictive") {
                throw tokens.unexpected("PERMISSIVE or RESTRICTIVE")
            }
        }
        if tokens.skip("for"), !tokens.skip("all") {
            policy.command = try command("SELECT, INSERT, UPDATE, DELETE or ALL")
        }
        if tokens.skip("to") { policy.roles = try roles() }
        if tokens.current.isWord("using") {
            let position = tokens.position
            tokens.advance()
            if policy.command == .insert {
                throw RulesFault(
                    "a policy FOR INSERT has no USING", at: position, remedy: "write WITH CHECK")
            }
            policy.using = try condition()
        }
        if tokens.current.isWord("with") {
            let position = tokens.position
            tokens.advance()
            try tokens.expect("check")
            if policy.command == .select || policy.command == .delete {
                throw RulesFault(
                    "a policy FOR SELECT or DELETE has no WITH CHECK", at: position,
                    remedy: "write USING")
            }
            policy.check = try condition()
        }
        return policy
    }

    private mutating func command(_ expected: String) throws(RulesFault) -> PolicyCommand {
        for command in PolicyCommand.allCases where tokens.skip(command.rawValue) {
            return command
        }
        throw tokens.unexpected(expected)
    }

    /// Reads roles; none stands for PUBLIC.
    private mutating func roles() throws(RulesFault) -> [NameText] {
        var roles: [NameText] = []
        var isPublic = false
        repeat {
            for word in ["current_user", "current_role", "session_user"]
            where tokens.current.isWord(word) {
                throw RulesFault(
                    "“\(word)” is not supported", at: tokens.position,
                    remedy: "write a role's name or PUBLIC")
            }
            _ = tokens.skip("group")
            if tokens.skip("public") {
                isPublic = true
            } else {
                let role = try tokens.name("a role or PUBLIC")
                // As in PostgreSQL, quotes make no difference to these.
                guard role.name != "none" else {
                    throw RulesFault(
                        "“none” is no role", at: role.position,
                        remedy: "write a role's name or PUBLIC")
                }
                if role.name == "public" { isPublic = true } else { roles.append(role) }
            }
        } while tokens.skipSign(",")
        return isPublic ? [] : roles
    }
}

extension StatementReader {
    private mutating func alterTable(
        _ position: TextPosition
    ) throws(RulesFault) -> Statement {
        guard tokens.skip("table") else { throw onlyStatements(position) }
        if tokens.skip("if") { try tokens.expect("exists") }
        _ = tokens.skip("only")
        let name = try type()
        let isEnabled: Bool?
        if tokens.current.isWord("no") || tokens.current.isWord("force") {
            // The owner of a table is the server, which is no person.
            _ = tokens.skip("no")
            try tokens.expect("force")
            isEnabled = nil
        } else if tokens.skip("enable") {
            isEnabled = true
        } else if tokens.skip("disable") {
            isEnabled = false
        } else {
            throw tokens.unexpected("ENABLE, DISABLE or FORCE ROW LEVEL SECURITY")
        }
        try tokens.expect("row")
        try tokens.expect("level")
        try tokens.expect("security")
        return Statement(
            position: position, content: .rowSecurity(type: name, isEnabled: isEnabled))
    }

    private mutating func privileges(_ isGrant: Bool) throws(RulesFault) -> Statement.Content {
        if !isGrant, tokens.current.isWord("grant") {
            throw RulesFault("“GRANT OPTION” is not supported", at: tokens.position)
        }
        let privileges = try privilegeList()
        try tokens.expect("on")
        let types = try grantedTypes()
        try tokens.expect(isGrant ? "to" : "from")
        let roles = try roles()
        if tokens.current.isWord("with") {
            throw RulesFault("“WITH GRANT OPTION” is not supported", at: tokens.position)
        }
        if !tokens.skip("restrict"), tokens.current.isWord("cascade") { tokens.advance() }
        return .privileges(
            PrivilegeText(isGrant: isGrant, privileges: privileges, types: types, roles: roles))
    }

    /// Reads privileges; nil stands for ALL.
    private mutating func privilegeList() throws(RulesFault) -> [PrivilegeText.Privilege]? {
        if tokens.skip("all") {
            _ = tokens.skip("privileges")
            return nil
        }
        var list: [PrivilegeText.Privilege] = []
        repeat {
            for word in ["truncate", "references", "trigger"] where tokens.current.isWord(word) {
                throw RulesFault(
                    "“\(word.uppercased())” is not supported: no device can do it",
                    at: tokens.position, remedy: "leave it out")
            }
            let position = tokens.position
            let command = try command("SELECT, INSERT, UPDATE, DELETE or ALL")
            var columns: [NameText]?
            if tokens.skipSign("(") {
                guard command == .insert || command == .update else {
                    throw RulesFault(
                        "\(command.rawValue.uppercased()) cannot be limited to columns",
                        at: position,
                        remedy: "leave out the columns, or put them in a type of their own")
                }
                var names: [NameText] = []
                repeat { names.append(try tokens.name("a column")) } while tokens.skipSign(",")
                try tokens.expectSign(")")
                columns = names
            }
            list.append(PrivilegeText.Privilege(command: command, columns: columns))
        } while tokens.skipSign(",")
        return list
    }

    /// Reads the types of GRANT and REVOKE; nil stands for all of the data set.
    private mutating func grantedTypes() throws(RulesFault) -> [NameText]? {
        if tokens.skip("all") {
            try tokens.expect("tables")
            try tokens.expect("in")
            try tokens.expect("schema")
            try tokens.expect("public")
            return nil
        }
        _ = tokens.skip("table")
        var types: [NameText] = []
        repeat { types.append(try type()) } while tokens.skipSign(",")
        return types
    }
}
