internal import CSQLite

/// The database handle, which a connection and its statements share.
///
/// SQLite keeps a handle closed by `sqlite3_close_v2` alive until its last statement is finalized
/// (https://sqlite.org/c3ref/close.html), so a statement may outlive its connection.
final class Handle {
    let pointer: OpaquePointer
    /// The targets of the update hook, the authorizer, the trace and the progress handler. The
    /// handle holds them while it is open, since a statement that outlives its connection still
    /// reports.
    var changeCollector: ChangeCollector?
    var accessCollector: AccessCollector?
    var statementObserver: StatementObserver?
    var stopCondition: StopCondition?
    /// Whether SQLite had no memory for a value, and no caller knows it yet.
    private var hasLostValue = false
    /// Whether a transaction is still open although it was to be rolled back.
    private var owesRollback = false

    init(pointer: OpaquePointer) {
        self.pointer = pointer
    }

    deinit {
        sqlite3_close_v2(pointer)
    }

    func error(_ code: Int32, sql: String?) -> SQLiteError {
        let extended = sqlite3_extended_errcode(pointer)
        let message = sqlite3_errmsg(pointer).map { String(cString: $0) } ?? "unknown error"
        return SQLiteError(
            extendedCode: extended == SQLITE_OK ? code : extended, message: message, sql: sql)
    }

    /// Notes that a value was lost if the reason is memory. Call it when SQLite returned nothing
    /// for a value.
    func noteLostValue() {
        if sqlite3_errcode(pointer) & 0xff == SQLITE_NOMEM { hasLostValue = true }
    }

    /// Rolls back an open transaction, with a statement or, if that cannot run, with another one.
    /// If neither can run for lack of memory, the connection does nothing else until one can.
    func rollback(by statement: Statement?) {
        hasLostValue = false
        if let statement {
            _ = sqlite3_step(statement.pointer)
            statement.rewind()
            // Discards the step count; it belongs to no measurement.
            _ = statement.takeVirtualMachineSteps()
        }
        owesRollback = sqlite3_get_autocommit(pointer) == 0
        if owesRollback { _ = sqlite3_exec(pointer, "ROLLBACK", nil, nil, nil) }
        owesRollback = sqlite3_get_autocommit(pointer) == 0
    }

    /// Reports a lost value, and carries out a rollback that failed earlier. Call it before any
    /// other operation, because nothing may happen before the rollback.
    /// - Throws: `SQLiteError` once after a value was lost, and as long as a rollback fails.
    func makeUp() throws(SQLiteError) {
        guard hasLostValue || owesRollback else { return }
        if owesRollback { rollback(by: nil) }
        guard hasLostValue || owesRollback else { return }
        hasLostValue = false
        throw SQLiteError(
            extendedCode: SQLITE_NOMEM, message: String(cString: sqlite3_errstr(SQLITE_NOMEM)))
    }
}
