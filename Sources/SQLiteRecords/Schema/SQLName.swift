/// Names of tables and columns as SQL text.
public enum SQLName {
    /// The name in double quotes, those within it doubled: any name is then one identifier
    /// (https://sqlite.org/lang_keywords.html).
    public static func quoted(_ name: String) -> String {
        doubled(name, "\"")
    }

    /// The text in single quotes, those within it doubled: a literal of SQL, for a text without NUL.
    public static func literal(_ text: String) -> String { doubled(text, "'") }

    /// Puts a text in quotes. A letter after a quote may be one `Character` with it, so this goes by scalars.
    private static func doubled(_ text: String, _ quote: Unicode.Scalar) -> String {
        var result = String.UnicodeScalarView()
        result.append(quote)
        for scalar in text.unicodeScalars {
            if scalar == quote { result.append(quote) }
            result.append(scalar)
        }
        result.append(quote)
        return String(result)
    }

    /// The names quoted and parted by commas.
    public static func list(_ names: [String]) -> String {
        names.map(quoted).joined(separator: ", ")
    }

    /// SQLite compares names without regard to the case of ASCII letters, and of no others.
    package static func folded(_ name: String) -> String {
        String(
            decoding: name.utf8.map { (65...90).contains($0) ? $0 + 32 : $0 }, as: UTF8.self)
    }
}
