/// Names of tables and columns in SQL text.
enum SQLName {
    /// The name in quotes, for any name.
    static func quoted(_ name: String) -> String {
        "\""
            + name.split(separator: "\"", omittingEmptySubsequences: false)
            .joined(separator: "\"\"") + "\""
    }
}
