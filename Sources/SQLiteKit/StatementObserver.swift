internal import CSQLite

/// An observer of a connection's statements. It receives each statement's text and duration.
final class StatementObserver {
    let handler: (StatementRun) -> Void
    let includesValues: Bool

    init(includesValues: Bool, _ handler: @escaping (StatementRun) -> Void) {
        self.includesValues = includesValues
        self.handler = handler
    }
}

/// One run of a statement.
public struct StatementRun: Sendable {
    /// The statement, with placeholders in place of values.
    public let sql: String
    /// The statement with its values; nil unless the caller asked for it.
    public let expandedSQL: String?
    /// The time from the first step to the end, by the file system's clock.
    public let nanoseconds: Int64
}

extension Connection {
    /// Calls `handler` for each statement when its run ends. Pass nil to end that.
    /// - Parameter includesValues: Whether the handler receives bound values.
    public func observeStatements(
        includesValues: Bool = false, _ handler: ((StatementRun) -> Void)?
    ) {
        guard let handler else {
            sqlite3_trace_v2(handle.pointer, 0, nil, nil)
            handle.statementObserver = nil
            return
        }
        let observer = StatementObserver(includesValues: includesValues, handler)
        handle.statementObserver = observer
        // SQLITE_TRACE_PROFILE: P is the statement, X points to the nanoseconds
        // (https://sqlite.org/c3ref/c_trace.html).
        sqlite3_trace_v2(
            handle.pointer, UInt32(SQLITE_TRACE_PROFILE),
            { _, context, statement, elapsed in
                guard let context, let statement, let elapsed else { return 0 }
                let observer = Unmanaged<StatementObserver>.fromOpaque(context)
                    .takeUnretainedValue()
                let pointer = OpaquePointer(statement)
                var expanded: String?
                if observer.includesValues, let text = sqlite3_expanded_sql(pointer) {
                    expanded = String(cString: text)
                    sqlite3_free(text)
                }
                observer.handler(
                    StatementRun(
                        sql: sqlite3_sql(pointer).map { String(cString: $0) } ?? "",
                        expandedSQL: expanded,
                        nanoseconds: elapsed.loadUnaligned(as: Int64.self)))
                return 0
            }, Unmanaged.passUnretained(observer).toOpaque())
    }
}
