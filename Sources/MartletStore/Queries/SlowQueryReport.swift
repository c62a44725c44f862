internal import SQLiteKit
internal import Synchronization

/// Which statements a database has spent its time on, gathered while it runs.
///
/// ```swift
/// let report = SlowQueryReport()
/// var options = DatabaseOptions()
/// options.trace = report.trace
/// …
/// for entry in report.entries.prefix(5) { print(entry) }
/// ```
///
/// Statements are told apart by their text, in which no values are. Of these it keeps so many as it
/// is given room for; where there is no more, the one that has taken least makes way.
public final class SlowQueryReport: Sendable {
    /// What is known of one statement.
    public struct Entry: Hashable, Sendable {
        /// The statement, with `?` in place of values.
        public let sql: String
        /// How often it has run.
        public fileprivate(set) var runs: Int
        /// All runs together.
        public fileprivate(set) var total: Duration
        /// The longest run.
        public fileprivate(set) var longest: Duration

        /// A run on average.
        public var average: Duration { total / runs }
    }

    private struct State {
        var entries: [String: Entry] = [:]
        var forgotten = 0
    }

    /// Only runs that take at least this long are counted.
    public let slowerThan: Duration
    /// The number of statements there is room for.
    public let capacity: Int
    private let state = Mutex(State())

    /// - Parameters:
    ///   - slowerThan: Runs that take less are not counted; zero counts all.
    ///   - capacity: The number of statements to keep, at least 1.
    public init(slowerThan: Duration = .zero, capacity: Int = 200) {
        self.slowerThan = slowerThan
        self.capacity = max(1, capacity)
    }

    /// What to give to the database's options.
    public var trace: StatementTrace {
        StatementTrace(slowerThan: slowerThan) { [self] run in
            note(sql: run.sql, duration: run.duration)
        }
    }

    func note(sql: String, duration: Duration) {
        state.withLock { state in
            if var known = state.entries[sql] {
                known.runs += 1
                known.total += duration
                known.longest = max(known.longest, duration)
                state.entries[sql] = known
                return
            }
            if state.entries.count >= capacity,
                let least = state.entries.min(by: { $0.value.total < $1.value.total })?.key
            {
                state.entries[least] = nil
                state.forgotten += 1
            }
            state.entries[sql] = Entry(sql: sql, runs: 1, total: duration, longest: duration)
        }
    }

    /// The statements, those that took most time first.
    public var entries: [Entry] {
        state.withLock { Array($0.entries.values) }.sorted {
            ($1.total, $0.sql) < ($0.total, $1.sql)
        }
    }

    /// How many statements have made way for others.
    public var forgotten: Int { state.withLock(\.forgotten) }

    /// Begins anew.
    public func reset() {
        state.withLock { $0 = State() }
    }

    /// How SQLite would run a statement, a line for each step (https://sqlite.org/eqp.html).
    /// - Throws: `StoreError` where the statement no longer suits the schema.
    public func plan(of entry: Entry, in context: ReadContext) throws -> [String] {
        try context.checkValid()
        let sql = "EXPLAIN QUERY PLAN " + entry.sql
        let count: Int
        do {
            count = Int(try context.session.connection.statement(sql).parameterCount)
        } catch {
            throw StoreError.of(error)
        }
        return try context.queryPlan(
            entry.sql, Array(repeating: .null, count: count))
    }
}

extension SlowQueryReport.Entry: CustomStringConvertible {
    /// One line: the time in all, the longest run, the number of runs, the statement.
    public var description: String {
        "\(total) in \(runs) runs, longest \(longest): \(sql)"
    }
}
