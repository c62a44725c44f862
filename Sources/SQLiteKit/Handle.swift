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
}
