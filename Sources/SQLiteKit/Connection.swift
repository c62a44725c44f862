internal import CSQLite

/// A connection to a database file, confined to its holder.
///
/// Every call blocks. Run connections on separate executors, never on the cooperative pool.
///
/// ```swift
/// let connection = try Connection(path: path)
/// try connection.execute("CREATE TABLE clubs (id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT")
/// let statement = try connection.statement("INSERT INTO clubs (name) VALUES (?)")
/// statement.bind(1, text: "Rowing")
/// try statement.run()
/// ```
public final class Connection {
    public enum Mode: Sendable {
        case readOnly
        case readWrite
        case readWriteCreate
    }

    let handle: Handle
    /// The path the connection was opened with.
    public let path: String
    private var cache: StatementCache
    /// The ROLLBACK statement. It is compiled before the first transaction begins, so that a
    /// rollback needs no memory when none is left.
    private var rollbackStatement: Statement?
    /// The number of statements compiled since the connection opened. Statements from the cache do
    /// not count.
    public private(set) var preparedStatements = 0
    /// Whether the open transaction defers foreign keys because of `deferForeignKeys`.
    var isDeferringForeignKeys = false
    /// Whether a statement was compiled while foreign keys were not deferred, since they were last
    /// deferred.
    var hasCompiledWithoutDeferring = true

    /// Opens a file.
    /// - Parameters:
    ///   - vfs: The name of a registered VFS; nil for the platform's VFS.
    ///   - busyTimeoutMilliseconds: The time to wait for another connection's lock.
    ///   - refusesQuotedText: Whether a text in double quotes is always a name
    ///     (https://sqlite.org/quirks.html#dblquote). This also concerns triggers that the connection fires.
    ///   - tracksTables: Whether statements record the tables that they read and write. A text in
    ///     double quotes is then always a name, too, and a PRAGMA that sets something can be executed
    ///     but not prepared.
    /// - Throws: `SQLiteError` if the file cannot be opened.
    public init(
        path: String, mode: Mode = .readWriteCreate, vfs: String? = nil,
        busyTimeoutMilliseconds: Int32 = 5_000, cachedStatements: Int = 200,
        refusesQuotedText: Bool = false, tracksTables: Bool = false
    ) throws(SQLiteError) {
        let access: Int32 =
            switch mode {
            case .readOnly: SQLITE_OPEN_READONLY
            case .readWrite: SQLITE_OPEN_READWRITE
            case .readWriteCreate: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
            }
        var pointer: OpaquePointer?
        let flags = access | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        let code = sqlite3_open_v2(path, &pointer, flags, vfs)
        guard let pointer else {
            throw SQLiteError(extendedCode: code, message: "no memory for a connection")
        }
        handle = Handle(pointer: pointer)
        self.path = path
        cache = StatementCache(capacity: cachedStatements)
        guard code == SQLITE_OK else { throw handle.error(code, sql: nil) }
        sqlite3_busy_timeout(pointer, busyTimeoutMilliseconds)
        if refusesQuotedText || tracksTables {
            // Without this, SQLite would read a misspelled "column" as a text and report no error.
            csqlite_refuse_double_quoted_text(pointer)
        }
        if tracksTables {
            let collector = AccessCollector()
            handle.accessCollector = collector
            Self.collect(on: pointer, into: collector)
        }
    }

    /// Sets how long to wait for another connection's lock.
    public func setBusyTimeout(milliseconds: Int32) {
        sqlite3_busy_timeout(handle.pointer, milliseconds)
    }

    private static func collect(on pointer: OpaquePointer, into collector: AccessCollector) {
        sqlite3_set_authorizer(
            pointer,
            { context, action, table, second, _, trigger in
                guard let context else { return SQLITE_OK }
                return Unmanaged<AccessCollector>.fromOpaque(context).takeUnretainedValue()
                    .note(action: action, table: table, second: second, trigger: trigger)
            }, Unmanaged.passUnretained(collector).toOpaque())
    }

    /// Runs a script of any number of statements without values.
    /// - Throws: `SQLiteError` at the first failure; the effects of earlier statements stay.
    public func execute(_ sql: String) throws(SQLiteError) {
        try handle.makeUp()
        let code = sqlite3_exec(handle.pointer, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw handle.error(code, sql: sql) }
    }

    /// Runs a script statement by statement, and passes the text of each to `check` before it runs.
    /// - Throws: The error of `check`, or `SQLiteError`. Either ends the script; the effects of
    ///   earlier statements stay.
    public func execute(script: String, _ check: (String) throws -> Void) throws {
        var bytes = Array(script.utf8CString)
        try bytes.withUnsafeMutableBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return }
            var next = UnsafePointer<CChar>(base)
            while next.pointee != 0 {
                var pointer: OpaquePointer?
                var tail: UnsafePointer<CChar>?
                let code = sqlite3_prepare_v2(handle.pointer, next, -1, &pointer, &tail)
                guard code == SQLITE_OK else { throw handle.error(code, sql: nil) }
                defer { sqlite3_finalize(pointer) }
                guard let tail else { return }
                next = tail
                // A text with only spaces or a comment is no statement.
                guard let pointer, let sql = sqlite3_sql(pointer) else { continue }
                try check(String(cString: sql))
                var result = SQLITE_ROW
                while result == SQLITE_ROW { result = sqlite3_step(pointer) }
                guard result == SQLITE_DONE else { throw handle.error(result, sql: nil) }
            }
        }
    }

    /// Returns a prepared statement, reset and unbound. It is from the cache if the cached one is
    /// idle.
    /// - Throws: `SQLiteError` if the statement cannot be compiled.
    public func statement(_ sql: String) throws(SQLiteError) -> Statement {
        if let cached = cache[sql], !cached.isBusy {
            cached.reset()
            return cached
        }
        let made = try prepare(sql)
        cache[sql] = made
        return made
    }

    /// Returns a new prepared statement that is not in the cache.
    /// - Throws: `SQLiteError` if the statement cannot be compiled.
    public func prepare(_ sql: String) throws(SQLiteError) -> Statement {
        preparedStatements += 1
        if !isDeferringForeignKeys { hasCompiledWithoutDeferring = true }
        guard let accessCollector = handle.accessCollector else {
            return try Statement(handle: handle, sql: sql)
        }
        accessCollector.isOn = true
        defer { accessCollector.isOn = false }
        do {
            let statement = try Statement(handle: handle, sql: sql)
            statement.access = accessCollector.take(sql: sql)
            return statement
        } catch {
            let denied = accessCollector.denied
            _ = accessCollector.take(sql: "")
            throw denied.map { .forbidden(pragma: $0, sql: sql) } ?? error
        }
    }

    /// Returns SQLite's count of virtual machine steps since the last call, for all statements that
    /// still exist.
    /// - Complexity: O(*n*) in the number of open statements.
    public func takeVirtualMachineSteps() -> Int {
        var steps = 0
        var statement = sqlite3_next_stmt(handle.pointer, nil)
        while let current = statement {
            steps += Int(sqlite3_stmt_status(current, SQLITE_STMTSTATUS_VM_STEP, 1))
            statement = sqlite3_next_stmt(handle.pointer, current)
        }
        return steps
    }

    /// Finalizes the cached statements. Call it before a schema change.
    public func clearStatementCache() {
        cache.removeAll()
    }

    /// The largest number of bytes of a value or a row (https://sqlite.org/limits.html#max_length).
    public var longestValue: Int {
        get { Int(sqlite3_limit(handle.pointer, SQLITE_LIMIT_LENGTH, -1)) }
        set { sqlite3_limit(handle.pointer, SQLITE_LIMIT_LENGTH, Int32(clamping: newValue)) }
    }

    /// The number of statements that are compiled and not yet finalized, including cached ones, but
    /// not the one for rollbacks.
    /// - Complexity: O(*n*) in the number of open statements.
    public var openStatements: Int {
        var count = 0
        var next = sqlite3_next_stmt(handle.pointer, nil)
        while next != nil {
            if next != rollbackStatement?.pointer { count += 1 }
            next = sqlite3_next_stmt(handle.pointer, next)
        }
        return count
    }

    /// The number of rows that the last INSERT, UPDATE or DELETE changed.
    public var changes: Int64 { sqlite3_changes64(handle.pointer) }
    /// The number of rows changed since the connection opened, including changes by triggers.
    public var totalChanges: Int64 { sqlite3_total_changes64(handle.pointer) }
    public var lastInsertedRowID: Int64 { sqlite3_last_insert_rowid(handle.pointer) }
    public var isInTransaction: Bool { sqlite3_get_autocommit(handle.pointer) == 0 }

    /// Whether a foreign key that is deferred to the commit is unresolved at this moment.
    ///
    /// SQLITE_DBSTATUS_DEFERRED_FKS is zero exactly if all are resolved
    /// (https://sqlite.org/c3ref/c_dbstatus_options.html). A savepoint can therefore be checked
    /// before the transaction commits.
    public var hasDeferredForeignKeyViolation: Bool {
        var current: Int32 = 0
        var highest: Int32 = 0
        sqlite3_db_status(
            handle.pointer, SQLITE_DBSTATUS_DEFERRED_FKS, &current, &highest, 0)
        return current != 0
    }

    /// Runs `body` between BEGIN IMMEDIATE and COMMIT, and rolls back if it throws.
    /// - Throws: The error of `body`, or the `SQLiteError` of BEGIN or COMMIT.
    public func transaction<Result, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws -> Result {
        try begin()
        do {
            let result = try body()
            try commit()
            return result
        } catch {
            rollback()
            throw error
        }
    }

    /// Begins a transaction that writes (BEGIN IMMEDIATE).
    /// - Throws: `SQLiteError`; `isBusy` if another connection holds the lock for too long.
    public func begin() throws(SQLiteError) {
        try prepareRollback()
        isDeferringForeignKeys = false
        try run("BEGIN IMMEDIATE")
    }

    /// Begins a transaction in which all reads see one moment.
    /// - Throws: `SQLiteError` if the statement fails.
    public func beginReading() throws(SQLiteError) {
        try prepareRollback()
        isDeferringForeignKeys = false
        try run("BEGIN")
    }

    private func prepareRollback() throws(SQLiteError) {
        if rollbackStatement == nil {
            rollbackStatement = try Statement(handle: handle, sql: "ROLLBACK")
        }
    }

    /// Commits the open transaction.
    /// - Throws: `SQLiteError`. The transaction may still be open then.
    public func commit() throws(SQLiteError) {
        try run("COMMIT")
        isDeferringForeignKeys = false
    }

    /// Rolls back if a transaction is open. A failed COMMIT may have closed it already.
    public func rollback() {
        isDeferringForeignKeys = false
        guard isInTransaction else { return }
        handle.rollback(by: rollbackStatement)
    }

    /// Runs one statement without values, from the cache.
    /// - Throws: `SQLiteError` if the statement fails.
    public func run(_ sql: String) throws(SQLiteError) {
        let statement = try statement(sql)
        defer { statement.reset() }
        while try statement.step() {}
    }

    /// Returns the integer in the first column of the first row; nil if there is no row or a null.
    /// - Throws: `SQLiteError` if the statement fails.
    public func integer(_ sql: String) throws(SQLiteError) -> Int64? {
        let statement = try statement(sql)
        defer { statement.reset() }
        guard try statement.step(), !statement.isNull(0) else { return nil }
        return statement.integer(0)
    }

    /// Returns the text in the first column of the first row; nil if there is no row or a null.
    /// - Throws: `SQLiteError` if the statement fails.
    public func text(_ sql: String) throws(SQLiteError) -> String? {
        let statement = try statement(sql)
        defer { statement.reset() }
        guard try statement.step(), !statement.isNull(0) else { return nil }
        let text = statement.text(0)
        try handle.makeUp()
        return text
    }
}

@available(*, unavailable)
extension Connection: Sendable {}
