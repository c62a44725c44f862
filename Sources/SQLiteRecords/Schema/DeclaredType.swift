package import MartletModel

/// Finds the kind of a column's values by its declared type.
package enum DeclaredType {
    /// Returns the kind of a column with this declaration.
    ///
    /// A few words have a meaning of their own. All others follow SQLite's rules of affinity
    /// (https://sqlite.org/datatype3.html#determination_of_column_affinity). Types that SQLite
    /// calls numeric (dates, times, unknown words), and columns without a type, have the kind
    /// `any`.
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

    /// Returns the meaning of a column's values when policies compare them.
    package static func meaning(of declaration: String) -> ColumnMeaning {
        switch SQLName.folded(declaration) {
        case "date": .date
        case "uuid": .uuid(isCanonical: false)
        default: .plain
        }
    }

    /// Returns whether a numeric column with this declaration keeps all digits: `NUMERIC TEXT`, to
    /// which SQLite gives the affinity of text. Other numeric columns hold doubles.
    package static func keepsDigits(_ declaration: String) -> Bool {
        let word = SQLName.folded(declaration)
        return kind(of: word) == .numeric && !contains(word, "int")
            && (contains(word, "char") || contains(word, "clob") || contains(word, "text"))
    }

    /// Returns whether a key column with this declaration holds text: text affinity, or the word
    /// UUID.
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
