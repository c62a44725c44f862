/// The parts of a CREATE TRIGGER statement: when it fires, and the statements that it runs.
package struct TriggerDeclaration {
    private let text: [UInt8]
    /// The bytes after the name and before the table.
    private let event: Range<Int>
    /// The bytes from the table up to and including the word BEGIN.
    private let table: Range<Int>
    private let statements: [[SQLToken]]

    /// Returns nil if the text is no CREATE TRIGGER statement.
    /// - Parameter sql: The statement as stored in `sqlite_schema`.
    package init?(_ sql: String) {
        let text = Array(sql.utf8)
        let tokens = SQLToken.tokens(of: text)
        // The first word ON after the name belongs to the trigger. Names of columns come before it,
        // after OF, and are quoted if they are words of SQL.
        guard tokens.count > 3, tokens[0].kind == .word("create"),
            tokens[1].kind == .word("trigger"),
            let on = tokens.indices.dropFirst(3).first(where: { tokens[$0].kind == .word("on") }),
            let begin = tokens.indices.dropFirst(on + 2)
                .first(where: { tokens[$0].kind == .word("begin") }),
            let end = tokens.lastIndex(where: { $0.kind == .word("end") }), begin < end
        else { return nil }
        self.text = text
        event = tokens[3].start..<tokens[on].end
        table = tokens[on + 1].start..<tokens[begin].end
        statements = tokens[(begin + 1)..<end]
            .split { $0.isSymbol(";") }
            .map { Array($0) }
    }

    /// The tables to which its statements write.
    package var written: [String] { statements.flatMap(Self.written(by:)) }

    /// Returns the name in a CREATE TRIGGER statement without IF NOT EXISTS; nil if there is none.
    package static func name(_ sql: String) -> String? {
        let tokens = SQLToken.tokens(of: Array(sql.utf8))
        return tokens.count > 3 ? tokens[2].identifier : nil
    }

    /// Returns a copy of the trigger for another database, on the table in `main`: the text after
    /// its name. The copy has those statements that write only to tables for which `isKept` is
    /// true, or to none. Returns nil if there are no such statements.
    ///
    /// The copy refuses nothing: it leaves out statements that only read in order to RAISE, and
    /// replaces RAISE by NULL in others.
    package func copy(_ isKept: (String) -> Bool) -> String? {
        let kept = statements.compactMap { statement -> String? in
            let written = Self.written(by: statement)
            guard written.allSatisfy(isKept) else { return nil }
            let raises = Self.raises(in: statement)
            return raises.isEmpty || !written.isEmpty ? string(statement, without: raises) : nil
        }
        guard !kept.isEmpty else { return nil }
        return "\(string(event)) main.\(string(table)) \(kept.joined(separator: "; ")); END"
    }

    /// Returns the calls of RAISE, as positions of their first and last tokens. A column may have
    /// that name, too.
    private static func raises(in statement: [SQLToken]) -> [ClosedRange<Int>] {
        let ways = ["ignore", "rollback", "abort", "fail"].map { SQLToken.Kind.word($0) }
        return statement.indices.dropLast(2).compactMap { index in
            guard statement[index].kind == .word("raise"), statement[index + 1].isSymbol("("),
                ways.contains(statement[index + 2].kind)
            else { return nil }
            var depth = 0
            for end in statement.indices.dropFirst(index + 1) {
                if statement[end].isSymbol("(") { depth += 1 }
                if statement[end].isSymbol(")") { depth -= 1 }
                if depth == 0 { return index...end }
            }
            return nil
        }
    }

    /// Returns a statement's text with NULL in place of the calls of RAISE.
    private func string(_ statement: [SQLToken], without raises: [ClosedRange<Int>]) -> String? {
        guard let first = statement.first, let last = statement.last else { return nil }
        var written = ""
        var start = first.start
        for raise in raises {
            written += string(start..<statement[raise.lowerBound].start) + "NULL"
            start = statement[raise.upperBound].end
        }
        return written + string(start..<last.end)
    }

    /// Returns the tables to which a statement writes. Only the words INTO, UPDATE and DELETE FROM
    /// precede one; the UPDATE of an upsert is followed by SET.
    private static func written(by statement: [SQLToken]) -> [String] {
        var names: [String] = []
        for index in statement.indices {
            let next = statement.dropFirst(index + 1)
            switch statement[index].kind {
            case .word("into"):
                names += next.first.map { [name(of: $0)] } ?? []
            case .word("update"):
                let target = next.first?.kind == .word("or") ? next.dropFirst(2) : next
                if let table = target.first, table.kind != .word("set") {
                    names.append(name(of: table))
                }
            case .word("delete"):
                if next.first?.kind == .word("from"), let table = next.dropFirst().first {
                    names.append(name(of: table))
                }
            default:
                break
            }
        }
        return names
    }

    /// Returns the name that a token is. SQLite takes a string for a name if only a name is allowed
    /// there.
    private static func name(of token: SQLToken) -> String {
        token.identifier ?? token.nameOfLiteral ?? ""
    }

    private func string(_ range: Range<Int>) -> String {
        String(decoding: text[range], as: UTF8.self)
    }
}
