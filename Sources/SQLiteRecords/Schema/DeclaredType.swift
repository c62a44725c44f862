package import MartletModel

/// What a column's declared type says of the values in it.
package enum DeclaredType {
    /// The kind of a column declared so.
    ///
    /// A few words have a meaning of their own; all others follow SQLite's rules of affinity
    /// (https://sqlite.org/datatype3.html#determination_of_column_affinity), where what SQLite
    /// calls numeric (dates, times, unknown words) or leaves undeclared is `any`.
    package static func kind(of declaration: String) -> AttributeKind {
        let word = SQLName.folded(declaration)
        if word.hasPrefix("bool") { return .boolean }
        if word.hasPrefix("numeric") || word.hasPrefix("decimal") { return .numeric }
        if contains(word, "int") { return .integer }
        if contains(word, "char") || contains(word, "clob") || contains(word, "text") {
            return .text
        }
        if contains(word, "blob") { return .blob }
        if contains(word, "real") || contains(word, "floa") || contains(word, "doub") {
            return .real
        }
        return .any
    }

    /// Whether a numeric column declared so keeps all digits: `NUMERIC TEXT`, to which SQLite gives
    /// the affinity of text. Others hold doubles.
    package static func keepsDigits(_ declaration: String) -> Bool {
        let word = SQLName.folded(declaration)
        return kind(of: word) == .numeric && !contains(word, "int")
            && (contains(word, "char") || contains(word, "clob") || contains(word, "text"))
    }

    /// Whether a key column declared so holds text: text affinity, or the word UUID.
    static func isTextKey(_ declaration: String) -> Bool {
        kind(of: declaration) == .text || SQLName.folded(declaration) == "uuid"
    }

    private static func contains(_ text: String, _ part: String) -> Bool {
        let text = Array(text.utf8)
        let part = Array(part.utf8)
        guard text.count >= part.count else { return false }
        return (0...(text.count - part.count)).contains { start in
            text[start..<(start + part.count)].elementsEqual(part)
        }
    }
}
