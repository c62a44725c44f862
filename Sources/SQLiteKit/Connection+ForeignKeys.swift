internal import CSQLite

extension Connection {
    /// Defers all foreign keys to the end of the open transaction.
    ///
    /// SQLite decides when it compiles a statement how the statement treats foreign keys. It
    /// applies this pragma when it compiles it. Running the pragma makes SQLite recompile all
    /// statements of the connection. So this method runs the pragma only if statements were
    /// compiled since the last transaction that deferred foreign keys, or if compiling it had no
    /// effect in this SQLite (https://sqlite.org/pragma.html leaves that open).
    /// - Throws: `SQLiteError` if the pragma fails.
    public func deferForeignKeys() throws(SQLiteError) {
        try handle.makeUp()
        let pragma = try Statement(handle: handle, sql: "PRAGMA defer_foreign_keys = ON")
        let isDone = try defersForeignKeys
        if hasCompiledWithoutDeferring || !isDone { try pragma.run() }
        hasCompiledWithoutDeferring = false
        isDeferringForeignKeys = true
    }

    /// Whether foreign keys are deferred at this moment.
    private var defersForeignKeys: Bool {
        get throws(SQLiteError) {
            let pragma = try Statement(handle: handle, sql: "PRAGMA defer_foreign_keys")
            return try pragma.step() && pragma.integer(0) == 1
        }
    }

    /// Returns how many times SQLite recompiled the present statements since the last call.
    /// - Complexity: O(*n*) in the number of open statements.
    public func takeRecompilations() -> Int {
        var count = 0
        var statement = sqlite3_next_stmt(handle.pointer, nil)
        while let current = statement {
            count += Int(sqlite3_stmt_status(current, SQLITE_STMTSTATUS_REPREPARE, 1))
            statement = sqlite3_next_stmt(handle.pointer, current)
        }
        return count
    }
}
