internal import SQLiteRecords

/// What makes a full-text index: the virtual table, and the triggers that keep it in step.
struct FullTextIndex: Hashable, Sendable {
    let name: String
    /// The table whose rows are found.
    let content: String
    let contentDeclaration: String?
    let columns: [String]
    /// FTS5's options after the columns, as SQL.
    let options: [String]

    private var table: String { SQLName.quoted(name) }

    /// The virtual table keeps no text of its own: it reads the rows it finds by their rowids
    /// (https://sqlite.org/fts5.html#external_content_tables).
    private var creation: String {
        let list = [SQLName.list(columns), "content=\(Self.literal(content))"] + options
        return "CREATE VIRTUAL TABLE \(table) USING fts5(\(list.joined(separator: ", ")))"
    }

    private var triggerNames: [String] {
        ["insert", "update", "delete"].map { "\(name)_\($0)" }
    }

    /// What is taken out of the index must be exactly what was put in, so each trigger works with
    /// the row as it was and as it is.
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

    /// CREATE statements, for a table without rows.
    var script: String { ([creation] + triggers).map { $0 + ";\n" }.joined() }

    /// Puts all rows into the index anew.
    var rebuild: String { "INSERT INTO \(table)(\(table)) VALUES ('rebuild')" }

    /// Compares the index with the rows; fails where they differ
    /// (https://sqlite.org/fts5.html#the_integrity_check_command).
    var check: String { "INSERT INTO \(table)(\(table), rank) VALUES ('integrity-check', 1)" }

    /// Makes everything anew, whatever is there.
    private var repair: String {
        triggerNames.map { "DROP TRIGGER IF EXISTS \(SQLName.quoted($0));\n" }.joined()
            + "DROP TABLE IF EXISTS \(table);\n" + script + rebuild + ";\n"
    }

    private static func literal(_ text: String) -> String { SQLName.literal(text) }

    /// The index as the database describes it.
    /// - Throws: `MissingTable` where any of it is missing, was declared otherwise, or was made
    ///   over rows it has never seen; `StoreError` `.unknown`, `.schema`.
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
        // One row for each row in the index (https://sqlite.org/fts5.html#fts5_data_structures).
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
