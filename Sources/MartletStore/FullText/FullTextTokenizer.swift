/// The way in which a full-text search splits text into words
/// (https://sqlite.org/fts5.html#tokenizers).
public struct FullTextTokenizer: Hashable, Sendable {
    let specification: String

    private init(_ specification: String) {
        self.specification = specification
    }

    /// Splits text of any script into words of letters and numbers, and ignores case and accents.
    public static let unicode = FullTextTokenizer("unicode61 remove_diacritics 2")
    /// Splits text as `unicode` does, but distinguishes accents.
    public static let unicodeWithAccents = FullTextTokenizer("unicode61 remove_diacritics 0")
    /// Splits text as `unicode` does, and reduces English words to their stems.
    public static let english = FullTextTokenizer("porter unicode61 remove_diacritics 2")
    /// Indexes every three characters in a row. It finds parts of words, also in scripts without
    /// spaces. The index is larger, and a search needs at least three characters.
    public static let trigram = FullTextTokenizer("trigram")
}
