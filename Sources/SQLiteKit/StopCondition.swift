internal import CSQLite

/// Asked from time to time whether the running statement shall end.
final class StopCondition {
    let isStopped: () -> Bool

    /// Steps of SQLite's machine between two questions: some ten microseconds.
    static let period: Int32 = 1_000

    init(_ isStopped: @escaping () -> Bool) {
        self.isStopped = isStopped
    }
}

extension Connection {
    /// Asks `isStopped` while statements run; one under way when it says yes ends with
    /// SQLITE_INTERRUPT, and a writing one takes its transaction back. Nil asks no more.
    ///
    /// Unlike `sqlite3_interrupt`, which is lost when no statement runs at that moment and may meet
    /// the next one, this cannot miss and cannot hit anything else
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
