internal import CSQLite

/// One connection to a database file, confined to whoever holds it.
///
/// Every call blocks; run connections on executors of their own, never on the cooperative pool.
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
    /// A ROLLBACK, compiled before the first transaction begins: where there is no memory left, it
    /// must not take any.
    private var rollbackStatement: Statement?
    /// Statements compiled since the connection opened; those from the cache do not count.
    public private(set) var preparedStatements = 0
    /// Whether the open transaction defers foreign keys, as `deferForeignKeys` made it.
    var isDeferringForeignKeys = false
    /// Whether a statement was compiled, since foreign keys were last deferred, while they were not.
    var hasCompiledWithoutDeferring = true

    /// Opens a file.
    /// - Parameters:
    ///   - vfs: The name of a registered VFS; nil for the platform's.
    ///   - busyTimeoutMilliseconds: How long to wait for another connection's lock.
    ///   - tracksTables: Whether statements record the tables that they read and write. A text in
    ///     double quotes is then always a name (https://sqlite.org/quirks.html#dblquote), and a
    ///     PRAGMA that sets something can be executed but not prepared.
    /// - Throws: `SQLiteError` when the file cannot be opened.
    public init(
        path: String, mode: Mode = .readWriteCreate, vfs: String? = nil,
        busyTimeoutMilliseconds: Int32 = 5_000, cachedStatements: Int = 200,
        tracksTables: Bool = false
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
        if tracksTables {
            // Else a misspelled "column" would be text and not an error.
            csqlite_refuse_double_quoted_text(pointer)
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
    public func execute(_ sql: String) throws(SQLiteError) {
        try handle.makeUp()
        let code = sqlite3_exec(handle.pointer, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw handle.error(code, sql: sql) }
    }

    /// Runs a script statement by statement, after showing each one's text to `check`. A throw of
    /// `check` ends the script there; what ran before it stays.
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
                // Nothing but spaces or a comment makes no statement.
                guard let pointer, let sql = sqlite3_sql(pointer) else { continue }
                try check(String(cString: sql))
                var result = SQLITE_ROW
                while result == SQLITE_ROW { result = sqlite3_step(pointer) }
                guard result == SQLITE_DONE else { throw handle.error(result, sql: nil) }
            }
        }
    }

    /// A prepared statement, from the cache where it is idle there. It comes reset and unbound.
    public func statement(_ sql: String) throws(SQLiteError) -> Statement {
        if let cached = cache[sql], !cached.isBusy {
            cached.reset()
            return cached
        }
        let made = try prepare(sql)
        cache[sql] = made
        return made
    }

    /// A prepared statement of the caller's own, outside the cache.
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

    /// SQLite's count of virtual machine steps of all statements since the last call; those of
    /// statements that are gone are missing.
    public func takeVirtualMachineSteps() -> Int {
        var steps = 0
        var statement = sqlite3_next_stmt(handle.pointer, nil)
        while let current = statement {
            steps += Int(sqlite3_stmt_status(current, SQLITE_STMTSTATUS_VM_STEP, 1))
            statement = sqlite3_next_stmt(handle.pointer, current)
        }
        return steps
    }

    /// Finalizes the cached statements; do so before a schema change.
    public func clearStatementCache() {
        cache.removeAll()
    }

    /// The bytes a value or a row may take (https://sqlite.org/limits.html#max_length).
    public var longestValue: Int {
        get { Int(sqlite3_limit(handle.pointer, SQLITE_LIMIT_LENGTH, -1)) }
        set { sqlite3_limit(handle.pointer, SQLITE_LIMIT_LENGTH, Int32(clamping: newValue)) }
    }

    /// Statements compiled and not yet finalized, cached ones included; but for the one that is
    /// kept for rollbacks.
    public var openStatements: Int {
        var count = 0
        var next = sqlite3_next_stmt(handle.pointer, nil)
        while next != nil {
            if next != rollbackStatement?.pointer { count += 1 }
            next = sqlite3_next_stmt(handle.pointer, next)
        }
        return count
    }

    /// Rows changed by the last INSERT, UPDATE or DELETE.
    public var changes: Int64 { sqlite3_changes64(handle.pointer) }
    /// Rows changed since the connection opened, those changed by triggers included.
    public var totalChanges: Int64 { sqlite3_total_changes64(handle.pointer) }
    public var lastInsertedRowID: Int64 { sqlite3_last_insert_rowid(handle.pointer) }
    public var isInTransaction: Bool { sqlite3_get_autocommit(handle.pointer) == 0 }

    /// Whether a foreign key, deferred to the commit, is unresolved at this moment.
    ///
    /// SQLITE_DBSTATUS_DEFERRED_FKS is zero exactly when all are resolved
    /// (https://sqlite.org/c3ref/c_dbstatus_options.html), so a savepoint can be judged before the
    /// transaction commits.
    public var hasDeferredForeignKeyViolation: Bool {
        var current: Int32 = 0
        var highest: Int32 = 0
        sqlite3_db_status(
            handle.pointer, SQLITE_DBSTATUS_DEFERRED_FKS, &current, &highest, 0)
        return current != 0
    }

    /// Runs `body` between BEGIN IMMEDIATE and COMMIT; rolls back when it throws.
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

    /// Begins a transaction that writes.
    public func begin() throws(SQLiteError) {
        try prepareRollback()
        isDeferringForeignKeys = false
        try run("BEGIN IMMEDIATE")
    }

    /// Begins a transaction that reads, all of one moment.
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

    public func commit() throws(SQLiteError) {
        try run("COMMIT")
        isDeferringForeignKeys = false
    }

    /// Rolls back if a transaction is open; a failed COMMIT may have closed it already.
    public func rollback() {
        isDeferringForeignKeys = false
        guard isInTransaction else { return }
        handle.rollback(by: rollbackStatement)
    }

    /// Runs one statement without values, from the cache.
    public func run(_ sql: String) throws(SQLiteError) {
        let statement = try statement(sql)
        defer { statement.reset() }
        while try statement.step() {}
    }

    /// The integer in the first column of the first row; nil where there is no row or a null.
    public func integer(_ sql: String) throws(SQLiteError) -> Int64? {
        let statement = try statement(sql)
        defer { statement.reset() }
        guard try statement.step(), !statement.isNull(0) else { return nil }
        return statement.integer(0)
    }

    /// The text in the first column of the first row; nil where there is no row or a null.
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
