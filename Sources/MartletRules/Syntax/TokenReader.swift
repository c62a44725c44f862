/// Reads tokens one after another, and says what was expected.
struct TokenReader {
    private let tokens: [Token]
    private(set) var index = 0

    init(_ tokens: [Token]) { self.tokens = tokens }

    var current: Token { tokens[index] }
    var position: TextPosition { current.position }
    var isAtEnd: Bool { current.kind == .end }

    /// The token behind the current one.
    var following: Token { tokens[min(index + 1, tokens.count - 1)] }

    /// Returns the tokens from one index to before another.
    func tokens(from start: Int, to end: Int) -> ArraySlice<Token> { tokens[start..<end] }

    mutating func advance() { index = min(index + 1, tokens.count - 1) }

    /// Passes over a word.
    /// - Returns: Whether it was there.
    mutating func skip(_ word: String) -> Bool {
        guard current.isWord(word) else { return false }
        advance()
        return true
    }

    mutating func skipSign(_ sign: String) -> Bool {
        guard current.isSign(sign) else { return false }
        advance()
        return true
    }

    mutating func expect(_ word: String) throws(RulesFault) {
        guard skip(word) else { throw unexpected("“\(word.uppercased())”") }
    }

    mutating func expectSign(_ sign: String) throws(RulesFault) {
        guard skipSign(sign) else { throw unexpected("“\(sign)”") }
    }

    /// Returns the fault of the current token.
    /// - Parameter expected: What may stand here.
    func unexpected(_ expected: String) -> RulesFault {
        RulesFault("\(current.shown) stands here", at: position, remedy: "expected \(expected)")
    }

    /// Reads a name: a word that is no key word, or one in double quotes.
    /// - Parameter what: What is named, for the message.
    mutating func name(_ what: String) throws(RulesFault) -> NameText {
        let start = position
        switch current.kind {
        case .name(let name):
            advance()
            return NameText(name: name, position: start)
        case .word(let word):
            guard !Self.reserved.contains(word) else {
                throw RulesFault(
                    "“\(word)” is a key word of SQL", at: start,
                    remedy: "expected \(what); write the name in double quotes if it is one")
            }
            advance()
            return NameText(name: word, position: start)
        default: throw unexpected(what)
        }
    }

    /// Words that PostgreSQL does not take for a column or a table if they have no quotes.
    static let reserved: Set<String> = [
        "all", "and", "any", "array", "as", "asc", "both", "case", "cast", "check", "collate",
        "column", "constraint", "create", "cross", "current_date", "current_role",
        "current_time", "current_timestamp", "current_user", "default", "desc", "distinct",
        "do", "else", "end", "except", "false", "fetch", "for", "foreign", "from", "full",
        "grant", "group", "having", "ilike", "in", "inner", "intersect", "into", "is", "join",
        "lateral", "left", "like", "limit", "natural", "not", "null", "offset", "on", "only",
        "or", "order", "outer", "primary", "references", "returning", "right", "select",
        "session_user", "similar", "some", "table", "then", "to", "true", "union", "unique",
        "user", "using", "when", "where", "window", "with",
    ]
}
