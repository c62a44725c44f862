internal import SQLiteKit
internal import SQLiteRecords

extension MigrationContext {
    private static let writing: Set<String> = ["insert", "update", "delete", "replace", "with"]
    private static let reading: Set<String> = ["select", "with", "values"]

    /// Runs one statement that writes records: INSERT, UPDATE, DELETE or REPLACE.
    ///
    /// In a synchronised file, all records that a version writes become one change set of this
    /// device, which is sent like any other. Every device would repeat the same edits, so let the
    /// server make them if it can. A new record takes its integer key from
    /// `(SELECT id FROM martlet_new_id)`.
    /// - Parameters:
    ///   - sql: The statement, with `?` in place of each value.
    ///   - arguments: One value for each placeholder. Values never enter the text.
    /// - Throws: `StoreError`: `.statement` for other statements and invalid ones, `.constraint` if
    ///   the schema forbids the values.
    public func execute(_ sql: String, _ arguments: [SQLValue] = []) throws {
        try checkOpen()
        try check(sql, among: Self.writing, call: "execute", advice: "an INSERT, UPDATE or DELETE")
        try willUseRecords(writing: true)
        try session.forEachRow(sql, arguments) { _ in }
    }

    /// Runs one query and returns its rows.
    /// - Parameters:
    ///   - sql: The query, with `?` in place of each value.
    ///   - arguments: One value for each placeholder.
    /// - Throws: `StoreError` `.statement` for other statements and invalid ones.
    public func rows(_ sql: String, _ arguments: [SQLValue] = []) throws -> [RecordValues] {
        try checkOpen()
        try check(sql, among: Self.reading, call: "rows", advice: "a SELECT")
        try willUseRecords(writing: false)
        var rows: [RecordValues] = []
        try session.forEachRow(sql, arguments) { row in
            rows.append(try row.values)
        }
        return rows
    }

    private func check(
        _ sql: String, among words: Set<String>, call: String, advice: String
    ) throws {
        let tokens = SQLToken.tokens(of: Array(sql.utf8))
        guard case .word(let first)? = tokens.first?.kind, words.contains(first) else {
            throw StoreError(
                .statement,
                "“\(call)” runs \(advice), and got another statement; tables, columns and indexes"
                    + " have calls of their own.")
        }
        if let end = tokens.firstIndex(where: { $0.isSymbol(";") }), end < tokens.count - 1 {
            throw StoreError(
                .statement, "“\(call)” runs one statement, and got several; call it for each.")
        }
        if call == "rows", Self.writes(tokens) {
            throw StoreError(.statement, "“rows” runs a SELECT, and got a statement that writes.")
        }
        guard call == "execute" else { return }
        let own = tokens.lazy.compactMap(\.identifier).first {
            CreateScript.isOwn($0) && !Self.same($0, "martlet_new_id")
        }
        if let own {
            throw StoreError(
                .statement,
                "“\(own)” is one of Martlet's own; a migration writes the app's records only.")
        }
    }

    /// Returns whether a statement that begins with WITH writes. The words are reserved in SQL, so
    /// a name that equals one is in quotes; REPLACE is also a function.
    private static func writes(_ tokens: [SQLToken]) -> Bool {
        tokens.indices.contains { index in
            switch tokens[index].kind {
            case .word("insert"), .word("update"), .word("delete"): true
            case .word("into"): index > 0 && tokens[index - 1].kind == .word("replace")
            default: false
            }
        }
    }
}
