internal import CSQLite

extension Connection {
    /// Defers all foreign keys to the end of the open transaction.
    ///
    /// The pragma for that takes effect in SQLite when it is compiled; run, it makes all statements
    /// of the connection be compiled anew, for what a statement does about foreign keys is settled
    /// when it is compiled. So it is run only where statements have been compiled since the last
    /// transaction that deferred them, and where this SQLite does not work that way
    /// (https://sqlite.org/pragma.html leaves that open).
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
            let question = try Statement(handle: handle, sql: "PRAGMA defer_foreign_keys")
            return try question.step() && question.integer(0) == 1
        }
    }

    /// How often statements that are still there had to be compiled anew since the last call.
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
