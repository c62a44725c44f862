internal import SQLiteRecords

/// What a full-text search looks for.
///
/// What a person has typed is safe in every form but `init(query:)`: it is taken apart into words,
/// and no character of it is an operator.
public struct FullTextPattern: Hashable, Sendable {
    /// The pattern in FTS5's query language (https://sqlite.org/fts5.html#full_text_query_syntax).
    public let query: String

    /// A pattern of one's own, in FTS5's query language.
    public init(query: String) {
        self.query = query
    }

    /// All of these words, in any order and place.
    /// - Parameters:
    ///   - text: What a person typed.
    ///   - isComplete: Whether the last word is complete; otherwise words that begin with it are
    ///     found too, as is wanted while somebody types.
    /// - Returns: nil where there is no word in the text.
    public init?(allOf text: String, isComplete: Bool = false) {
        self.init(text, joined: " ", isComplete)
    }

    /// At least one of these words.
    /// - Parameters: as for all of them.
    public init?(anyOf text: String, isComplete: Bool = false) {
        self.init(text, joined: " OR ", isComplete)
    }

    /// These words one after the other.
    /// - Returns: nil where there is no word in the text.
    public init?(phrase text: String) {
        let words = Self.words(text)
        guard !words.isEmpty else { return nil }
        query = Self.quoted(words.joined(separator: " "))
    }

    private init?(_ text: String, joined separator: String, _ isComplete: Bool) {
        let words = Self.words(text)
        guard !words.isEmpty else { return nil }
        query = words.map(Self.quoted).joined(separator: separator) + (isComplete ? "" : " *")
    }

    /// The pattern looked for in some columns only.
    public func `in`<each Item: ColumnValue>(
        _ columns: repeat Column<each Item>
    ) -> FullTextPattern {
        var names: [String] = []
        repeat names.append(Self.quoted((each columns).name))
        return FullTextPattern(query: "{\(names.joined(separator: " "))} : (\(query))")
    }

    /// Parted at spaces; what has neither letter nor number in it would match nothing. A NUL would
    /// end the text for FTS5.
    private static func words(_ text: String) -> [String] {
        text.split { $0.isWhitespace || $0.unicodeScalars.contains("\0") }
            .filter { $0.contains { $0.isLetter || $0.isNumber } }
            .map(String.init)
    }

    private static func quoted(_ word: String) -> String { SQLName.quoted(word) }
}
