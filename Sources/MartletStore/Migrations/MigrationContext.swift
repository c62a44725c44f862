internal import MartletModel
internal import SQLiteKit
internal import SQLiteRecords

/// The changes that a version can make to the database. It is valid inside the closure that
/// receives it, which runs in the version's transaction.
///
/// Names are compared as SQLite compares them: the case of ASCII letters does not matter. Foreign
/// keys are not enforced while a version runs: ON DELETE actions do not run. If data statements
/// leave a record without its parent, the version fails.
///
/// ```swift
/// Migration(3, "full names") { context in
///     try context.addColumn("full_name TEXT", to: "players")
///     try context.execute("UPDATE players SET full_name = name")
///     try context.dropColumn("nickname", from: "players")
/// }
/// ```
public final class MigrationContext {
    let session: Session
    let host: (any MigrationHost)?
    private var isOpen = true
    /// The audit that began with the first data statement after a change of the schema.
    private var audit: ForeignKeyAudit?

    init(connection: Connection, host: (any MigrationHost)?) {
        session = Session(connection: connection)
        self.host = host
    }

    var connection: Connection { session.connection }

    /// Ends the last sequence of data statements.
    func finish() throws {
        try endData()
    }

    /// Refuses further calls.
    func end() {
        isOpen = false
    }

    func checkOpen() throws {
        guard isOpen else {
            throw StoreError(
                .misuse,
                "A migration's context was used after its version had ended; use it inside the"
                    + " closure only.")
        }
    }

    /// Prepares for a change of the schema.
    func willChangeSchema() throws {
        try checkOpen()
        try endData()
        try host?.willChangeSchema()
        session.forgetTables()
    }

    /// Prepares for a data statement.
    func willUseRecords(writing: Bool) throws {
        try checkOpen()
        try host?.willUseRecords()
        if writing, audit == nil { audit = try ForeignKeyAudit(connection) }
    }

    private func endData() throws {
        guard let audit else { return }
        self.audit = nil
        try audit.check()
    }
}

@available(*, unavailable)
extension MigrationContext: Sendable {}

// MARK: - Adding

extension MigrationContext {
    /// Runs any number of CREATE statements: tables, virtual tables such as FTS5, indexes, views
    /// and triggers.
    ///
    /// Use `IF NOT EXISTS` in the first version of a file that other programs may have set up.
    /// - Throws: `StoreError`: `.schema` for other statements and invalid ones; `.constraint` for a
    ///   unique index that existing rows violate, with the key of one of them.
    public func create(_ ddl: String) throws {
        try willChangeSchema()
        do {
            try CreateScript.run(ddl, on: connection, what: "the script")
        } catch let refusal as CreateScript.Refusal {
            throw Self.refusal(refusal, on: connection)
        } catch let error as SchemaError {
            throw StoreError(.schema, "\(error.message).")
        }
    }

    private static func refusal(
        _ refusal: CreateScript.Refusal, on connection: Connection
    ) -> StoreError {
        let error = refusal.error
        if error.isUniqueViolation, let statement = refusal.statement, statement.isUnique {
            return UniqueViolation.refusal(of: statement, error, on: connection)
        }
        guard error.isStatementError else { return StoreError(error) }
        let what = refusal.statement.map { " (\($0.kind.word) “\($0.name)”)" } ?? ""
        return StoreError(.schema, "The script is not valid\(what): \(error.message).")
    }

    /// Adds a column.
    /// - Parameters:
    ///   - declaration: The column as in CREATE TABLE: `nickname TEXT`,
    ///     `shirt INTEGER NOT NULL DEFAULT 0`. Existing rows get the default, or null.
    ///   - table: The table's name.
    /// - Throws: `StoreError`: `.unknown` if there is no such table, `.schema` if the declaration
    ///   cannot be added.
    public func addColumn(_ declaration: String, to table: String) throws {
        try checkOpen()
        let table = try named(table)
        let column = try declared(declaration, table: table)
        guard try !columns(of: table).contains(where: { Self.same($0, column.name) }) else {
            throw StoreError(.schema, "Table “\(table)” already has a column “\(column.name)”.")
        }
        try willChangeSchema()
        try alter(
            table, "ADD COLUMN \(column.text)",
            "Column “\(column.name)” cannot be added to “\(table)”")
    }

    private func declared(
        _ declaration: String, table: String
    ) throws -> TableDeclaration.Column {
        let parsed = TableDeclaration("CREATE TABLE t(\(declaration))")
        guard let column = parsed.columns.first, parsed.columns.count == 1, !column.name.isEmpty,
            parsed.constraints.isEmpty, parsed.options.isEmpty,
            !CreateScript.isOwn(column.name)
        else {
            throw StoreError(
                .schema,
                "A column of “\(table)” is to be added, but what was given does not declare exactly"
                    + " one column; write it as in CREATE TABLE: “nickname TEXT”.")
        }
        if column.contains("not", "null"), !column.contains("default"),
            !column.contains("generated"), !column.contains("as")
        {
            throw StoreError(
                .schema,
                "Column “\(column.name)” of “\(table)” is NOT NULL without a DEFAULT, so existing"
                    + " rows could not have it; give it one, or allow NULL.")
        }
        return column
    }
}

// MARK: - Changing

extension MigrationContext {
    /// Renames a column, also in the indexes, views and triggers that use it.
    /// - Throws: `StoreError`: `.unknown` if there is no such table or column, `.schema` if the new
    ///   name is taken.
    public func renameColumn(_ name: String, to new: String, in table: String) throws {
        try checkOpen()
        let table = try named(table)
        let name = try named(name, in: table)
        guard try !columns(of: table).contains(where: { Self.same($0, new) }) else {
            throw StoreError(.schema, "Table “\(table)” already has a column “\(new)”.")
        }
        guard !new.isEmpty, !CreateScript.isOwn(new) else {
            throw StoreError(
                .schema, "Column “\(name)” of “\(table)” cannot be named “\(new)”; choose another.")
        }
        try willChangeSchema()
        try alter(
            table, "RENAME COLUMN \(SQLName.quoted(name)) TO \(SQLName.quoted(new))",
            "Column “\(name)” of “\(table)” cannot be renamed")
        try host?.didRenameColumn(name, to: new, in: table)
    }

    /// Drops a column.
    /// - Throws: `StoreError`: `.unknown` if there is no such table or column, `.schema` if an
    ///   index, a view, a trigger, a reference or the key needs the column.
    public func dropColumn(_ name: String, from table: String) throws {
        try checkOpen()
        let table = try named(table)
        let name = try named(name, in: table)
        try willChangeSchema()
        try host?.willDropColumn(name, from: table)
        try alter(
            table, "DROP COLUMN \(SQLName.quoted(name))",
            "Column “\(name)” of “\(table)” cannot be dropped; drop what uses it first")
    }

    /// Drops an index made by CREATE INDEX.
    /// - Throws: `StoreError` `.unknown` if there is no index of that name.
    public func dropIndex(_ name: String) throws {
        try drop("index", name)
    }

    /// Drops a view.
    /// - Throws: `StoreError` `.unknown` if there is no view of that name.
    public func dropView(_ name: String) throws {
        try drop("view", name)
    }

    /// Drops a trigger.
    /// - Throws: `StoreError` `.unknown` if there is no trigger of that name.
    public func dropTrigger(_ name: String) throws {
        try drop("trigger", name)
    }

    /// Drops a table with its records, indexes and triggers.
    ///
    /// A synchronised table is dropped only if no data would be lost: the server knows no record of
    /// it, and no edit of its records is queued, parked or withheld. Otherwise keep it, unused.
    /// - Throws: `StoreError`: `.unknown` if there is no table of that name, `.schema` if it must
    ///   stay.
    public func dropTable(_ name: String) throws {
        try checkOpen()
        let name = try named(name)
        if let child = try referrer(of: name) {
            throw StoreError(
                .schema,
                "Table “\(name)” cannot be dropped: “\(child)” references it. Drop that table"
                    + " first, or keep this one.")
        }
        try willChangeSchema()
        try host?.willDropTable(name)
        try run("DROP TABLE \(SQLName.quoted(name))", "Table “\(name)” cannot be dropped")
    }

    private func drop(_ kind: String, _ name: String) throws {
        try checkOpen()
        let found = try object(kind, name, "sql IS NOT NULL")
        try willChangeSchema()
        try run("DROP \(kind) \(SQLName.quoted(found))", "The \(kind) “\(name)” cannot be dropped")
    }
}

// MARK: - Names

extension MigrationContext {
    static func same(_ left: String, _ right: String) -> Bool {
        SQLName.folded(left) == SQLName.folded(right)
    }

    /// Returns the table's name as it was declared, also of a virtual table.
    private func named(_ table: String) throws -> String {
        try object("table", table, "name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
    }

    private func object(_ kind: String, _ name: String, _ condition: String) throws -> String {
        let find = try reading {
            try connection.prepare(
                "SELECT name FROM main.sqlite_schema WHERE type = ?1"
                    + " AND name = ?2 COLLATE NOCASE AND \(condition)")
        }
        find.bind(1, text: kind)
        find.bind(2, text: name)
        let names = try reading { try find.rows { (row) throws(SQLiteError) in row.text(0) } }
        guard let found = names.first, !CreateScript.isOwn(found) else {
            throw StoreError(
                .unknown,
                "There is no \(kind) “\(name)” in the file; check the name against the versions"
                    + " before.")
        }
        return found
    }

    private func columns(of table: String) throws -> [String] {
        try reading {
            let find = try connection.prepare("SELECT name FROM pragma_table_xinfo(?1, 'main')")
            find.bind(1, text: table)
            return try find.rows { (row) throws(SQLiteError) in row.text(0) }
        }
    }

    private func named(_ column: String, in table: String) throws -> String {
        guard let found = try columns(of: table).first(where: { Self.same($0, column) }) else {
            throw StoreError(
                .unknown,
                "Table “\(table)” has no column “\(column)”; check the name against the versions"
                    + " before.")
        }
        return found
    }

    /// Returns a table that references another one; nil if there is none.
    private func referrer(of table: String) throws -> String? {
        try reading {
            let find = try connection.prepare(
                """
                SELECT object.name FROM main.sqlite_schema AS object,
                    pragma_foreign_key_list(object.name, 'main') AS reference
                WHERE object.type = 'table' AND reference."table" = ?1 COLLATE NOCASE
                    AND object.name <> ?1 LIMIT 1
                """)
            find.bind(1, text: table)
            return try find.rows { (row) throws(SQLiteError) in row.text(0) }.first
        }
    }

    private func reading<Result>(_ body: () throws -> Result) throws -> Result {
        do {
            return try body()
        } catch {
            throw StoreError.of(error)
        }
    }

    private func alter(_ table: String, _ change: String, _ refusal: String) throws {
        try run("ALTER TABLE \(SQLName.quoted(table)) \(change)", refusal)
    }

    private func run(_ sql: String, _ refusal: String) throws {
        do {
            let statement = try connection.prepare(sql)
            try statement.run()
        } catch {
            // SQLITE_ERROR means that the schema is at fault. Other errors come from the machine.
            guard error.isStatementError else { throw StoreError(error) }
            throw StoreError(.schema, "\(refusal): \(error.message).")
        }
    }
}
