import MartletStore

/// The index of what is written about players. Triggers keep it; nobody writes it.
public struct PlayerSearch: Sendable {
    public init() {}

    /// The numbers of players whose name or notes hold all words, best first. A word finds words
    /// that begin with it.
    func find(_ words: String, in context: ReadContext) throws -> [RecordID] {
        let terms = words.split(whereSeparator: \.isWhitespace).map { word in
            "\"\(word.replacing("\"", with: "\"\""))\"*"
        }
        guard !terms.isEmpty else { return [] }
        let rows = try context.rows(
            "SELECT rowid AS id FROM player_search WHERE player_search MATCH ? ORDER BY rank",
            [.text(terms.joined(separator: " "))])
        return try rows.map { try $0.value("id") }
    }
}
