/// How text is taken apart into words for a full-text search
/// (https://sqlite.org/fts5.html#tokenizers).
public struct FullTextTokenizer: Hashable, Sendable {
    let specification: String

    private init(_ specification: String) {
        self.specification = specification
    }

    /// Words of letters and numbers in any script; case and accents make no difference.
    public static let unicode = FullTextTokenizer("unicode61 remove_diacritics 2")
    /// The same, but accents make a difference.
    public static let unicodeWithAccents = FullTextTokenizer("unicode61 remove_diacritics 0")
    /// The same as `unicode`, with English words reduced to their stems.
    public static let english = FullTextTokenizer("porter unicode61 remove_diacritics 2")
    /// Any three characters in a row: finds parts of words, in scripts without spaces too. Takes
    /// more room; what is looked for needs at least three characters.
    public static let trigram = FullTextTokenizer("trigram")
}
