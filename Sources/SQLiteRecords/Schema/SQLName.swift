/// Names of tables and columns as SQL text.
public enum SQLName {
    /// The name in double quotes, those within it doubled: any name is then one identifier
    /// (https://sqlite.org/lang_keywords.html).
    public static func quoted(_ name: String) -> String {
        guard name.utf8.contains(UInt8(ascii: "\"")) else { return "\"\(name)\"" }
        let doubled = name.unicodeScalars.split(separator: "\"", omittingEmptySubsequences: false)
            .map { String($0) }
            .joined(separator: "\"\"")
        return "\"\(doubled)\""
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
