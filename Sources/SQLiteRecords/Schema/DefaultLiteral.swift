package import MartletModel

/// Reads the default value of a column, as SQLite writes it in `dflt_value`.
package enum DefaultLiteral {
    /// Returns the value that a new record gets.
    ///
    /// - Parameter text: The default, such as `'open'` or `0`.
    /// - Returns: Nil if the default is not a literal of the column's kind.
    package static func value(_ text: String, _ kind: AttributeKind) -> Value? {
        let quoted = quoted(text)
        switch kind {
        case .text: return quoted.map { .text($0) }
        case .integer: return Int64(text).map { .integer($0) }
        case .real: return Double(text).flatMap { $0.isFinite ? .real($0) : nil }
        case .boolean:
            switch text.lowercased() {
            case "1", "true": return .boolean(true)
            case "0", "false": return .boolean(false)
            default: return nil
            }
        // A number with more digits may be stored in another form.
        case .numeric: return (quoted ?? Int64(text).map { "\($0)" }).map { .text($0) }
        case .any: return quoted.map { .text($0) } ?? Int64(text).map { .integer($0) }
        case .blob: return nil
        }
    }

    /// Returns the text in quotes; nil for anything else.
    private static func quoted(_ text: String) -> String? {
        guard text.utf8.count >= 2, text.first == "'", text.last == "'" else { return nil }
        let inner = text.dropFirst().dropLast()
        guard !inner.replacing("''", with: "").contains("'") else { return nil }
        return String(inner.replacing("''", with: "'"))
    }
}
