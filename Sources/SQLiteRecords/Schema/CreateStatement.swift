/// The parts of a CREATE statement that a migration needs.
package struct CreateStatement {
    package enum Kind: String, Sendable {
        case table
        case virtualTable
        case index
        case view
        case trigger

        /// The word for a sentence.
        package var word: String { self == .virtualTable ? "virtual table" : rawValue }
    }

    package let kind: Kind
    package let isUnique: Bool
    package let isTemporary: Bool
    /// The name of the database in front of the name; nil if there is none.
    package let database: String?
    package let name: String
    /// The table of an index or a trigger.
    package private(set) var table: String?
    /// The columns and expressions of an index, as written, without directions.
    package private(set) var items: [String] = []
    /// The condition of a partial index.
    package private(set) var condition: String?
    /// The expressions of a table's generated columns, by the columns' names, in small letters.
    package private(set) var computed: [String: String] = [:]

    /// Reads a statement; returns nil if the text is no CREATE statement.
    /// - Parameter sql: One statement that SQLite has accepted.
    package init?(_ sql: String) {
        var cursor = TokenCursor(sql)
        while cursor.takeSymbol(";") {}
        guard cursor.take("create") else { return nil }
        isTemporary = cursor.take("temp") || cursor.take("temporary")
        isUnique = cursor.take("unique")
        let isVirtual = cursor.take("virtual")
        guard let kind = cursor.takeWord().flatMap(Kind.init(rawValue:)) else { return nil }
        self.kind = isVirtual ? .virtualTable : kind
        if cursor.take("if") { _ = cursor.take("not") && cursor.take("exists") }
        guard let first = cursor.takeName() else { return nil }
        if cursor.takeSymbol(".") {
            guard let second = cursor.takeName() else { return nil }
            database = first
            name = second
        } else {
            database = nil
            name = first
        }
        switch kind {
        case .index: readIndex(&cursor)
        case .table: readTable(&cursor)
        case .trigger:
            while !cursor.isAtEnd, !cursor.take("on") { cursor.skip() }
            table = cursor.takeName()
        default: break
        }
    }

    private mutating func readIndex(_ cursor: inout TokenCursor) {
        guard cursor.take("on"), let table = cursor.takeName(), cursor.takeSymbol("(") else {
            return
        }
        self.table = table
        var depth = 1
        var item: [SQLToken] = []
        func end() {
            if case .word(let word)? = item.last?.kind, word == "asc" || word == "desc" {
                item.removeLast()
            }
            if let first = item.first, let last = item.last {
                items.append(cursor.text(first.start, last.end))
            }
            item = []
        }
        while let token = cursor.next(), depth > 0 {
            if token.isSymbol("(") { depth += 1 }
            if token.isSymbol(")") { depth -= 1 }
            if depth == 0 || depth == 1 && token.isSymbol(",") {
                end()
            } else {
                item.append(token)
            }
            cursor.skip()
        }
        if cursor.take("where") { condition = cursor.rest }
    }

    private mutating func readTable(_ cursor: inout TokenCursor) {
        guard cursor.takeSymbol("(") else { return }
        var column = cursor.takeName()
        var depth = 1
        while let token = cursor.next(), depth > 0 {
            cursor.skip()
            if token.isSymbol("(") { depth += 1 }
            if token.isSymbol(")") { depth -= 1 }
            guard depth == 1 else { continue }
            if token.isSymbol(",") { column = cursor.takeName() }
            if token.kind == .word("as"), cursor.takeSymbol("("), let column {
                computed[SQLName.folded(column)] = cursor.takeEnclosed()
            }
        }
    }
}

/// A position in the tokens of a text.
private struct TokenCursor {
    private let bytes: [UInt8]
    private let tokens: [SQLToken]
    private var index = 0

    init(_ sql: String) {
        bytes = Array(sql.utf8)
        tokens = SQLToken.tokens(of: bytes)
    }

    var isAtEnd: Bool { index >= tokens.count }

    func next() -> SQLToken? { isAtEnd ? nil : tokens[index] }

    mutating func skip() { index += 1 }

    func text(_ start: Int, _ end: Int) -> String {
        String(decoding: bytes[start..<end], as: UTF8.self)
    }

    /// The remaining text, without a semicolon at its end.
    var rest: String {
        var last = tokens.count
        while last > index, tokens[last - 1].isSymbol(";") { last -= 1 }
        guard last > index else { return "" }
        return text(tokens[index].start, tokens[last - 1].end)
    }

    /// Takes the text before the parenthesis that closes the last one taken, and that parenthesis.
    mutating func takeEnclosed() -> String {
        let first = index
        var depth = 1
        while let token = next(), depth > 0 {
            if token.isSymbol("(") { depth += 1 }
            if token.isSymbol(")") { depth -= 1 }
            index += 1
        }
        guard index > first + 1 else { return "" }
        return text(tokens[first].start, tokens[index - 2].end)
    }

    mutating func take(_ word: String) -> Bool {
        guard next()?.kind == .word(word) else { return false }
        index += 1
        return true
    }

    mutating func takeSymbol(_ symbol: Character) -> Bool {
        guard next()?.isSymbol(symbol) == true else { return false }
        index += 1
        return true
    }

    mutating func takeWord() -> String? {
        guard case .word(let word)? = next()?.kind else { return nil }
        index += 1
        return word
    }

    /// Takes a name as written, without its quotes.
    mutating func takeName() -> String? {
        guard let token = next() else { return nil }
        index += 1
        switch token.kind {
        case .word: return text(token.start, token.end)
        case .name(let name): return name
        case .literal: return token.nameOfLiteral
        case .symbol: return nil
        }
    }
}
