internal import MartletModel
package import SQLiteKit
internal import SQLiteRecords

/// One connection, with the tables' descriptions and the prepared statements that its contexts
/// share. Only its owner calls it; every call blocks.
package final class Session {
    package let connection: Connection
    /// The synchronised tables; nil if the database is not synchronised.
    package let store: (any SyncedTables)?
    /// The hooks that run for every row written through a table or a context.
    package let hooks: WriteHooks
    private let generation: SchemaGeneration
    private var seenGeneration: Int
    private var seenVersion: Int64?
    /// Whether the current transaction has changed the schema.
    private var hasChangedSchema = false
    /// The statements of tables that were used before. `Session.tableCache` sets it, and a change
    /// of the schema clears it.
    var companion: AnyObject?
    private var descriptions: [String: TableDescription] = [:]

    /// Creates a session for a database that is not synchronised.
    /// - Parameter generation: Shared by all sessions on one file.
    package init(
        connection: Connection, hooks: WriteHooks = WriteHooks(),
        generation: SchemaGeneration = SchemaGeneration()
    ) {
        self.connection = connection
        store = nil
        self.hooks = hooks
        self.generation = generation
        seenGeneration = generation.current
    }

    /// Creates a session for a synchronised database.
    /// - Parameter generation: Shared by all sessions on one file.
    package init(
        store: any SyncedTables, hooks: WriteHooks = WriteHooks(),
        generation: SchemaGeneration = SchemaGeneration()
    ) {
        connection = store.connection
        self.store = store
        self.hooks = hooks
        self.generation = generation
        seenGeneration = generation.current
    }

    /// Forgets the tables' descriptions and statements if any connection of any process has changed
    /// the schema since the last call. The caller calls it inside each transaction, at its start.
    /// - Throws: `SQLiteError`.
    package func begin() throws {
        hasChangedSchema = false
        let version = try connection.integer("PRAGMA schema_version")
        let current = generation.current
        guard version != seenVersion || current != seenGeneration else { return }
        seenVersion = version
        seenGeneration = current
        forgetTables()
        // Preparing a statement uses the schema that SQLite has in memory. Only running a statement
        // checks whether the file still has that schema.
        try connection.run("SELECT 1 FROM sqlite_master LIMIT 0")
    }

    /// Informs the other sessions if the transaction has changed the schema.
    package func committed() {
        if hasChangedSchema { generation.advance() }
    }

    /// Forgets the tables' descriptions and statements if the transaction had changed the schema.
    package func rolledBack() {
        if hasChangedSchema { forgetTables() }
    }

    /// Forgets the tables' descriptions and statements, after a change of the schema.
    package func forgetTables() {
        descriptions.removeAll()
        companion = nil
        connection.clearStatementCache()
    }

    /// Returns a table's description.
    /// - Throws: `StoreError` `.unknown` if there is no such table.
    func description(of table: String) throws -> TableDescription {
        if let known = descriptions[table] { return known }
        do {
            guard let read = try TableDescription.read(table, connection) else {
                throw StoreError(
                    .unknown,
                    "There is no table “\(table)”. Declare it in a migration, or give the table a"
                        + " declaration to be made on first use.")
            }
            descriptions[table] = read
            return read
        } catch {
            throw StoreError.of(error, table: table)
        }
    }

    /// Returns a prepared statement with its values bound. The caller resets it.
    /// - Throws: `StoreError` `.statement` for the wrong number of values; any error of SQLite.
    func statement(_ sql: String, _ arguments: [SQLValue]) throws -> Statement {
        do {
            let statement = try connection.statement(sql)
            guard Int(statement.parameterCount) == arguments.count else {
                throw StoreError(
                    .statement,
                    "The statement has \(statement.parameterCount) parameters and got"
                        + " \(arguments.count) values; give one value for each.")
            }
            for (index, argument) in arguments.enumerated() {
                try bind(argument, at: Int32(index + 1), of: statement)
            }
            return statement
        } catch {
            throw StoreError.of(error, values: arguments)
        }
    }

    func bind(_ value: SQLValue, at index: Int32, of statement: Statement) throws {
        try Self.bind(value, at: index, of: statement)
    }

    static func bind(_ value: SQLValue, at index: Int32, of statement: Statement) throws {
        switch value {
        case .null: statement.bindNull(index)
        case .integer(let number): statement.bind(index, integer: number)
        case .real(let number): statement.bind(index, real: number)
        case .text(let text):
            guard statement.bindUnlessNUL(index, text: text) else { throw nulInText }
        case .blob(let bytes): statement.bind(index, blob: bytes)
        }
    }

    static var nulInText: StoreError {
        StoreError(
            .value,
            "A text holds a NUL character, at which other programs would end it; remove it, or"
                + " store the text as binary data.")
    }

    /// Returns the columns of a statement's rows.
    func layout(of statement: Statement) -> RowLayout {
        if let known = statement.companion as? RowLayout { return known }
        let layout = RowLayout(statement)
        statement.companion = layout
        return layout
    }

    /// Runs one statement to its end and calls `body` with each row.
    /// - Throws: `StoreError`, and any error of `body`.
    func forEachRow(
        _ sql: String, _ arguments: [SQLValue], recorder: RegionRecorder? = nil,
        table: String? = nil, check: ((TableAccess) throws -> Void)? = nil,
        _ body: (borrowing Row) throws -> Void
    ) throws {
        let statement = try statement(sql, arguments)
        defer { statement.reset() }
        try check?(statement.access)
        if let recorder { note(statement.access.reads, recorder) }
        let layout = layout(of: statement)
        do {
            while try statement.step() {
                try body(Row(statement, layout: layout))
            }
            noteUnclearWrites(statement)
        } catch {
            throw StoreError.of(error, table: table, values: arguments)
        }
        if statement.access.changesSchema { noteSchemaChange() }
    }

    func noteSchemaChange() {
        hasChangedSchema = true
        forgetTables()
    }

    /// Records the tables that an observed query reads.
    func note(_ tables: Set<String>, _ recorder: RegionRecorder) {
        for table in tables where recorder.isNew(table) {
            // A source without a description, such as a table-valued function, never changes.
            let description = try? self.description(of: table)
            recorder.note(table, isVirtual: description?.isVirtual ?? false)
        }
    }

    /// Informs the collector of the tables whose rows SQLite's update hook does not report.
    func noteUnclearWrites(_ statement: Statement) {
        guard connection.changeCollector != nil, !statement.access.writes.isEmpty else { return }
        noteAll(unclearTables(of: statement))
    }

    /// Returns the tables whose rows a statement writes without a report from SQLite's update hook.
    func unclearTables(of statement: Statement) -> [String] {
        var tables = statement.access.unclearWrites
        for table in statement.access.writes where !table.hasPrefix(ReservedWords.prefix) {
            let known = descriptions[table] ?? (try? self.description(of: table))
            guard let description = known else { continue }
            let setsKey = description.key.contains {
                statement.access.updatedColumns[table]?.contains($0) ?? false
            }
            if !description.hasRowID || description.mayReplaceRows || setsKey {
                tables.insert(table)
            }
        }
        return tables.sorted()
    }

    /// Informs the collector that any row of these tables may have changed.
    func noteAll(_ tables: [String]) {
        guard !tables.isEmpty, let collector = connection.changeCollector else { return }
        for table in tables { collector.noteAll(table) }
    }
}

@available(*, unavailable)
extension Session: Sendable {}
