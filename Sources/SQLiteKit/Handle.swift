internal import CSQLite

/// The database handle, shared by a connection and its statements.
///
/// SQLite keeps a handle closed by `sqlite3_close_v2` alive until its last statement is finalized
/// (https://sqlite.org/c3ref/close.html), so a statement may outlive its connection.
final class Handle {
    let pointer: OpaquePointer
    /// What the update hook, the authorizer, the trace and the progress handler report to: held as
    /// long as the handle is open, since a statement that outlives its connection still reports.
    var changeCollector: ChangeCollector?
    var accessCollector: AccessCollector?
    var statementObserver: StatementObserver?
    var stopCondition: StopCondition?
    /// Whether a value could not be given for want of memory, and nobody knows yet.
    private var hasLostValue = false
    /// Whether a transaction is still open that was to be rolled back.
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

    /// To be called where SQLite gave nothing for a value: notes it where the reason is memory.
    func noteLostValue() {
        if sqlite3_errcode(pointer) & 0xff == SQLITE_NOMEM { hasLostValue = true }
    }

    /// Ends an open transaction without its changes, by a statement or, where that cannot be run, by
    /// another. Where neither can, for want of memory, nothing is done on the connection before it
    /// could.
    func rollback(by statement: Statement?) {
        hasLostValue = false
        if let statement {
            _ = sqlite3_step(statement.pointer)
            statement.rewind()
            // Its steps are nobody's.
            _ = statement.takeVirtualMachineSteps()
        }
        owesRollback = sqlite3_get_autocommit(pointer) == 0
        if owesRollback { _ = sqlite3_exec(pointer, "ROLLBACK", nil, nil, nil) }
        owesRollback = sqlite3_get_autocommit(pointer) == 0
    }

    /// To be called before anything is done. Makes up for values being read without errors, and for
    /// rollbacks: what follows one that failed must not happen.
    /// - Throws: `SQLiteError` once after a value was lost, and while a rollback is owed.
    func makeUp() throws(SQLiteError) {
        guard hasLostValue || owesRollback else { return }
        if owesRollback { rollback(by: nil) }
        guard hasLostValue || owesRollback else { return }
        hasLostValue = false
        throw SQLiteError(
            extendedCode: SQLITE_NOMEM, message: String(cString: sqlite3_errstr(SQLITE_NOMEM)))
    }
}
