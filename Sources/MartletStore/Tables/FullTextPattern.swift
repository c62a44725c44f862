internal import SQLiteRecords

/// A pattern for a full-text search.
///
/// Text that a person has typed is safe in every initializer but `init(query:)`. It is split into
/// words, and none of its characters is an operator.
///
/// ```swift
/// if let pattern = FullTextPattern(allOf: typed) {
///     let named = try search.query(matching: pattern.in(players.name)).fetch(in: context)
/// }
/// ```
public struct FullTextPattern: Hashable, Sendable {
    /// The pattern in FTS5's query language (https://sqlite.org/fts5.html#full_text_query_syntax).
    public let query: String

    /// Creates a pattern from a query in FTS5's language.
    public init(query: String) {
        self.query = query
    }

    /// Creates a pattern that finds all of these words, in any order and place. It is nil if the
    /// text has no word.
    /// - Parameters:
    ///   - text: The text that a person typed.
    ///   - isComplete: Whether the last word is complete. If not, the search also finds words that
    ///     begin with it, which suits a search while a person types.
    public init?(allOf text: String, isComplete: Bool = false) {
        self.init(text, joined: " ", isComplete)
    }

    /// Creates a pattern that finds at least one of these words. It is nil if the text has no word.
    /// - Parameters:
    ///   - text: The text that a person typed.
    ///   - isComplete: Whether the last word is complete. If not, the search also finds words that
    ///     begin with it.
    public init?(anyOf text: String, isComplete: Bool = false) {
        self.init(text, joined: " OR ", isComplete)
    }

    /// Creates a pattern that finds these words in this order, without words between them. It is
    /// nil if the text has no word.
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

    /// Returns a pattern that searches only in these columns.
    public func `in`<each Item: ColumnValue>(
        _ columns: repeat Column<each Item>
    ) -> FullTextPattern {
        var names: [String] = []
        repeat names.append(Self.quoted((each columns).name))
        return FullTextPattern(query: "{\(names.joined(separator: " "))} : (\(query))")
    }

    /// Splits a text at spaces. Words without a letter or a number are left out, because they would
    /// match nothing. A NUL also separates words, because it would end the text for FTS5.
    private static func words(_ text: String) -> [String] {
        text.split { $0.isWhitespace || $0.unicodeScalars.contains("\0") }
            .filter { $0.contains { $0.isLetter || $0.isNumber } }
            .map(String.init)
    }

    private static func quoted(_ word: String) -> String { SQLName.quoted(word) }
}
