internal import MartletModel

extension RulesProgram {
    /// The part of a rules file that decides what somebody may do, and what it asks about him.
    package struct Excerpt: Hashable, Sendable {
        /// Statements of a rules file.
        package var text: String
        /// The user, the roles and the claims for which the statements ask.
        package var viewer: Viewer
    }

    /// Returns the statements that concern somebody: his roles' policies and privileges, and everyone's.
    /// They are without comments. A program that is read from them judges his changes as this one does.
    /// - Complexity: O(*n*) in the length of the file.
    package func excerpt(for viewer: Viewer) -> Excerpt {
        // The file was read before.
        guard let statements = try? StatementReader.statements(of: text),
            let tokens = try? Lexer.tokens(of: text)
        else { preconditionFailure("a program has a rules file that can be read") }
        var lines = withdrawals(statements)
        for statement in statements where concerns(statement, viewer.roles) {
            lines.append(words(of: statement, tokens[statement.tokens], viewer.roles) + ";")
        }
        return Excerpt(text: lines.joined(separator: "\n"), viewer: asked(of: viewer))
    }

    /// Returns statements without which a type would count as one that no GRANT names.
    private func withdrawals(_ statements: [Statement]) -> [String] {
        var named: Set<Int> = []
        for statement in statements {
            guard case .privileges(let text) = statement.content, text.isGrant else { continue }
            guard let types = text.types else {
                named = Set(schema.types.indices)
                break
            }
            named.formUnion(types.compactMap { try? Resolver.position(of: $0, in: schema) })
        }
        return named.sorted().map {
            "REVOKE ALL ON \(Self.quoted(schema.types[$0].name)) FROM PUBLIC;"
        }
    }

    /// Returns a name in double quotes, as a rules file has it.
    package static func quoted(_ name: String) -> String {
        let parts = name.split(separator: "\"", omittingEmptySubsequences: false)
        return "\"\(parts.joined(separator: "\"\""))\""
    }

    private func concerns(_ statement: Statement, _ roles: NameSet) -> Bool {
        let named = statement.roles
        return named.isEmpty || named.contains { roles.contains($0.name) }
    }

    /// Returns a statement for somebody: without other roles, and with what is known of them in
    /// conditions.
    private func words(
        of statement: Statement, _ tokens: ArraySlice<Token>, _ roles: NameSet
    ) -> String {
        var words: [String] = []
        let listed = statement.roles.map(\.position.offset)
        var index = tokens.startIndex
        while index < tokens.endIndex {
            let token = tokens[index]
            if token.position.offset == listed.first, let last = listed.last {
                let own = statement.roles.map(\.name).filter(roles.contains).map(Self.quoted)
                words.append(own.joined(separator: ", "))
                while index < tokens.endIndex, tokens[index].position.offset <= last { index += 1 }
            } else if let end = Self.end(ofCallFrom: index, in: tokens),
                case .text(let role) = tokens[index + 2].kind, !roles.contains(role)
            {
                words.append("false")
                index = end
            } else if token.isText, let text = canonicalTexts[token.position.offset] {
                // The device does not know that the column has UUIDs.
                words.append("'\(text)'")
                index += 1
            } else {
                words.append(TextSpan(start: token.position, end: token.end).text(in: scalars))
                index += 1
            }
        }
        return words.joined(separator: " ")
    }

    /// Returns the index behind a call of `martlet_role`, whose argument may have a cast; nil if none begins
    /// here.
    private static func end(ofCallFrom start: Int, in tokens: ArraySlice<Token>) -> Int? {
        guard tokens[start].isWord("martlet_role") else { return nil }
        for end in [start + 3, start + 5]
        where end < tokens.endIndex && tokens[end].isSign(")") { return end + 1 }
        return nil
    }

    /// Returns the facts about somebody for which the policies of his roles and the privileges ask.
    private func asked(of viewer: Viewer) -> Viewer {
        var asked = Viewer()
        for type in schema.types.indices {
            for role in privileges[type].keys.compactMap(\.self) { asked.roles.insert(role.text) }
            for policy in policies[type] {
                asked.roles.formUnion(policy.roles)
                guard policy.roles.isEmpty || !policy.roles.isDisjoint(with: viewer.roles) else {
                    continue
                }
                let inputs = inputs(of: policy)
                asked.roles.formUnion(inputs.roles)
                if inputs.user { asked.user = viewer.user }
                for claim in inputs.claims.sorted() {
                    asked.claims[claim] = viewer.claims.value(ofExactName: claim)
                }
            }
        }
        asked.roles.formIntersection(viewer.roles)
        return asked
    }
}
