/// The first word of a statement. It is enough to know if the statement begins or ends a
/// transaction.
struct StatementWord: Sendable {
    private let word: String

    init(_ sql: String) {
        var rest = Substring(sql).unicodeScalars
        while let first = rest.first {
            if first.properties.isWhitespace || first == ";" {
                rest = rest.dropFirst()
            } else if rest.starts(with: "--".unicodeScalars) {
                rest = rest.drop { $0 != "\n" }
            } else if rest.starts(with: "/*".unicodeScalars) {
                rest = Self.afterComment(rest)
            } else {
                break
            }
        }
        word = String(Substring(rest.prefix { $0.properties.isAlphabetic })).uppercased()
    }

    /// Returns the text after a comment. Comments of this kind nest.
    private static func afterComment(_ text: Substring.UnicodeScalarView)
        -> Substring.UnicodeScalarView
    {
        var rest = text
        var depth = 0
        while !rest.isEmpty {
            if rest.starts(with: "/*".unicodeScalars) {
                depth += 1
                rest = rest.dropFirst(2)
            } else if rest.starts(with: "*/".unicodeScalars) {
                depth -= 1
                rest = rest.dropFirst(2)
                if depth == 0 { break }
            } else {
                rest = rest.dropFirst()
            }
        }
        return rest
    }

    var begins: Bool { ["BEGIN", "START"].contains(word) }

    /// Whether the statement commits, or may commit later in another session (PREPARE TRANSACTION).
    var commits: Bool { ["COMMIT", "END", "PREPARE"].contains(word) }

    /// Whether the statement leaves nothing behind in the database.
    private var isHarmless: Bool {
        begins
            || ["SET", "SHOW", "LISTEN", "UNLISTEN", "DEALLOCATE", "ROLLBACK", "ABORT", "RESET"]
                .contains(word)
    }

    /// Whether a lost connection leaves a doubt about the commit of these statements.
    /// - Parameter isInTransaction: Whether a transaction is open before the first statement.
    static func leaveDoubt(_ statements: [String], isInTransaction: Bool) -> Bool {
        var isOpen = isInTransaction
        for word in statements.lazy.map({ StatementWord($0) }) {
            if word.commits { return true }
            if word.begins { isOpen = true }
            if !isOpen, !word.isHarmless { return true }
        }
        return false
    }

    /// Whether a lost connection leaves a doubt about the commit of a script. Only the server knows
    /// where its statements end. So in a transaction any word counts, and outside one everything
    /// counts that is not known to be harmless.
    static func leavesDoubt(script: String, isInTransaction: Bool) -> Bool {
        if isInTransaction {
            return script.split(whereSeparator: { !$0.isLetter })
                .contains { StatementWord(String($0)).commits }
        }
        return script.split(separator: ";").map { StatementWord(String($0)) }
            .contains { !$0.isHarmless && !$0.word.isEmpty }
    }
}
