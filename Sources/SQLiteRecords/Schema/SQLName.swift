/// Writes names of tables and columns as SQL text.
package enum SQLName {
    /// Returns the name in double quotes, with double quotes in it doubled. Any name is then one
    /// identifier (https://sqlite.org/lang_keywords.html).
    package static func quoted(_ name: String) -> String {
        doubled(name, "\"")
    }

    /// Returns the text in single quotes, with single quotes in it doubled: a literal of SQL, for a
    /// text without NUL.
    package static func literal(_ text: String) -> String { doubled(text, "'") }

    /// Puts a text in quotes. It goes by scalars, because a letter after a quote may be one
    /// `Character` with it.
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

    /// Returns the names, quoted and separated by commas.
    package static func list(_ names: [String]) -> String {
        names.map(quoted).joined(separator: ", ")
    }

    /// Returns the names of columns with the name of their table, separated by commas. If the table lacks such a
    /// column, SQLite reports an error. It would take a name without the table's as a text
    /// (https://sqlite.org/quirks.html#dblquote).
    package static func list(_ names: [String], of table: String) -> String {
        let table = quoted(table)
        return names.map { "\(table).\(quoted($0))" }.joined(separator: ", ")
    }

    /// Returns the name with small ASCII letters. SQLite compares names without regard to the case
    /// of ASCII letters, and of no others.
    package static func folded(_ name: String) -> String {
        String(
            decoding: name.utf8.map { (65...90).contains($0) ? $0 + 32 : $0 }, as: UTF8.self)
    }
}
