/// The parts of a CREATE TABLE statement: its columns, its constraints, its options.
package struct TableDeclaration {
    package struct Column {
        package let name: String
        /// The declaration as written, including the name.
        package let text: String
        /// The tokens after the name.
        package let tokens: [SQLToken]

        package func contains(_ words: String...) -> Bool {
            let wanted = words.map { SQLToken.Kind.word($0) }
            guard tokens.count >= wanted.count else { return false }
            return (0...(tokens.count - wanted.count)).contains { start in
                tokens[start..<(start + wanted.count)].map(\.kind) == wanted
            }
        }
    }

    package private(set) var columns: [Column] = []
    /// The constraints of the table, in no order.
    package private(set) var constraints: Set<[SQLToken]> = []
    /// The tokens after the closing parenthesis.
    package private(set) var options: [SQLToken] = []

    private static let constraintWords: Set<String> = [
        "constraint", "primary", "unique", "check", "foreign",
    ]

    /// Reads a statement.
    /// - Parameter sql: The statement as `sqlite_schema` has it.
    package init(_ sql: String) {
        let text = Array(sql.utf8)
        let tokens = SQLToken.tokens(of: text)
        guard let opening = tokens.firstIndex(where: { $0.isSymbol("(") }) else { return }
        var depth = 0
        var item: [SQLToken] = []
        for (index, token) in tokens.enumerated().dropFirst(opening) {
            if token.isSymbol("(") { depth += 1 }
            if token.isSymbol(")") { depth -= 1 }
            if depth == 0 {
                add(item, text)
                options = Array(tokens[(index + 1)...])
                return
            }
            if depth == 1, token.isSymbol(",") {
                add(item, text)
                item = []
            } else if index > opening {
                item.append(token)
            }
        }
    }

    /// Returns the column with this name, in any case of its ASCII letters.
    func column(_ name: String) -> Column? {
        columns.first { SQLName.folded($0.name) == SQLName.folded(name) }
    }

    private mutating func add(_ item: [SQLToken], _ text: [UInt8]) {
        guard let first = item.first, let last = item.last else { return }
        if case .word(let word) = first.kind, Self.constraintWords.contains(word) {
            constraints.insert(SQLToken.withPlainTables(item))
            return
        }
        let name =
            switch first.kind {
            // The name is taken as written, not in small letters.
            case .word: String(decoding: text[first.start..<first.end], as: UTF8.self)
            default: first.identifier ?? first.nameOfLiteral ?? ""
            }
        columns.append(
            Column(
                name: name, text: String(decoding: text[first.start..<last.end], as: UTF8.self),
                tokens: SQLToken.withPlainTables(Array(item.dropFirst()))))
    }
}
