internal import SQLiteRecords

/// A full-text index: a virtual table, and the triggers that keep it up to date.
struct FullTextIndex: Hashable, Sendable {
    let name: String
    /// The table that the index searches.
    let content: String
    let contentDeclaration: String?
    let columns: [String]
    /// The options of FTS5 after the columns, as SQL.
    let options: [String]

    private var table: String { SQLName.quoted(name) }

    /// The statement that creates the virtual table. It stores no text, but reads the rows that it
    /// finds by their rowids (https://sqlite.org/fts5.html#external_content_tables).
    private var creation: String {
        let list = [SQLName.list(columns), "content=\(Self.literal(content))"] + options
        return "CREATE VIRTUAL TABLE \(table) USING fts5(\(list.joined(separator: ", ")))"
    }

    private var triggerNames: [String] {
        ["insert", "update", "delete"].map { "\(name)_\($0)" }
    }

    /// The statements that create the triggers. The index must remove exactly the text that it
    /// added, so each trigger gives it the row as it was and as it is.
    private var triggers: [String] {
        let list = SQLName.list(columns)
        let removal =
            "INSERT INTO \(table)(\(table), rowid, \(list)) VALUES ('delete', OLD.rowid, "
            + columns.map { "OLD." + SQLName.quoted($0) }.joined(separator: ", ") + ");"
        let addition =
            "INSERT INTO \(table)(rowid, \(list)) VALUES (NEW.rowid, "
            + columns.map { "NEW." + SQLName.quoted($0) }.joined(separator: ", ") + ");"
        let differs =
            (["OLD.rowid <> NEW.rowid"]
            + columns.map(SQLName.quoted).map { "OLD.\($0) IS NOT NEW.\($0)" })
            .joined(separator: " OR ")
        let names = triggerNames.map(SQLName.quoted)
        let on = "ON \(SQLName.quoted(content))"
        return [
            "CREATE TRIGGER \(names[0]) AFTER INSERT \(on) BEGIN \(addition) END",
            "CREATE TRIGGER \(names[1]) AFTER UPDATE \(on) WHEN \(differs)"
                + " BEGIN \(removal) \(addition) END",
            "CREATE TRIGGER \(names[2]) AFTER DELETE \(on) BEGIN \(removal) END",
        ]
    }

    /// The CREATE statements of the index, for a table without rows.
    var script: String { ([creation] + triggers).map { $0 + ";\n" }.joined() }

    /// The statement that rebuilds the index from all rows.
    var rebuild: String { "INSERT INTO \(table)(\(table)) VALUES ('rebuild')" }

    /// The statement that compares the index with the rows. It fails if they differ
    /// (https://sqlite.org/fts5.html#the_integrity_check_command).
    var check: String { "INSERT INTO \(table)(\(table), rank) VALUES ('integrity-check', 1)" }

    /// The statements that recreate the index, whatever the file has now.
    private var repair: String {
        triggerNames.map { "DROP TRIGGER IF EXISTS \(SQLName.quoted($0));\n" }.joined()
            + "DROP TABLE IF EXISTS \(table);\n" + script + rebuild + ";\n"
    }

    private static func literal(_ text: String) -> String { SQLName.literal(text) }

    /// Returns the index as the database describes it.
    /// - Throws: `MissingTable` if a part of it is missing or has another declaration, or if it is
    ///   empty although the table has rows; `StoreError` `.unknown` if there is no such table or
    ///   column; `.schema` if the table has no rowids.
    func description(_ session: Session) throws -> TableDescription {
        let rows = try session.tableStatements(content, declaration: contentDeclaration)
        if let known = session.knownStatements(of: name) { return known.description }
        guard rows.description.hasRowID else {
            throw StoreError(
                .schema,
                "“\(content)” has no rowids, so it cannot be searched; declare it as an ordinary"
                    + " table, not WITHOUT ROWID.")
        }
        for column in columns { _ = try rows.column(column) }
        guard try isWhole(session) else {
            throw MissingTable(name: name, declaration: repair, isDerived: true)
        }
        return try session.tableStatements(name, declaration: nil).description
    }

    private func isWhole(_ session: Session) throws -> Bool {
        let wanted = Set([creation] + triggers)
        var found: Set<String> = []
        let names = [name] + triggerNames
        try session.forEachRow(
            "SELECT sql FROM main.sqlite_schema WHERE name IN (?, ?, ?, ?)",
            names.map(SQLValue.text)
        ) { row in found.insert(try row.get(at: 0)) }
        guard found == wanted else { return false }
        // The index has one row here for each indexed row
        // (https://sqlite.org/fts5.html#fts5_data_structures).
        var isUnseen = false
        try session.forEachRow(
            """
            SELECT EXISTS (SELECT 1 FROM \(SQLName.quoted(content)))
                AND NOT EXISTS (SELECT 1 FROM \(SQLName.quoted(name + "_docsize")))
            """, []
        ) { row in isUnseen = try row.get(at: 0) }
        return !isUnseen
    }
}
