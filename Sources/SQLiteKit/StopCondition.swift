internal import CSQLite

/// A condition that SQLite checks from time to time to know if it should stop the running
/// statement.
final class StopCondition {
    let isStopped: () -> Bool

    /// The steps of SQLite's virtual machine between two checks: some ten microseconds.
    static let period: Int32 = 1_000

    init(_ isStopped: @escaping () -> Bool) {
        self.isStopped = isStopped
    }
}

extension Connection {
    /// Checks `isStopped` while statements run. If it returns true, the running statement ends with
    /// SQLITE_INTERRUPT, and a writing statement rolls its transaction back. Pass nil to remove the
    /// condition.
    ///
    /// `sqlite3_interrupt` has no effect if no statement runs at that moment, and may stop the next
    /// one. This condition stops exactly the statements that run while it holds
    /// (https://sqlite.org/c3ref/progress_handler.html).
    public func stopStatements(when isStopped: (() -> Bool)?) {
        guard let isStopped else {
            sqlite3_progress_handler(handle.pointer, 0, nil, nil)
            handle.stopCondition = nil
            return
        }
        let condition = StopCondition(isStopped)
        handle.stopCondition = condition
        sqlite3_progress_handler(
            handle.pointer, StopCondition.period,
            { context in
                guard let context else { return 0 }
                let condition = Unmanaged<StopCondition>.fromOpaque(context).takeUnretainedValue()
                return condition.isStopped() ? 1 : 0
            }, Unmanaged.passUnretained(condition).toOpaque())
    }
}
