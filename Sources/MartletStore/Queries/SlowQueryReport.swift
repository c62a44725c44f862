internal import SQLiteKit
internal import Synchronization

/// A report of the statements on which a database has spent its time. It grows while the database
/// runs.
///
/// ```swift
/// let report = SlowQueryReport()
/// var options = DatabaseOptions()
/// options.trace = report.trace
/// // … the database runs with these options
/// for entry in report.entries.prefix(5) { print(entry) }
/// ```
///
/// Statements with the same text count as one; their values do not matter. The report keeps at most
/// `capacity` statements. For a new one it evicts the one with the least total time.
public final class SlowQueryReport: Sendable {
    /// The measurements of one statement.
    public struct Entry: Hashable, Sendable {
        /// The statement, with `?` in place of values.
        public let sql: String
        /// The number of runs.
        public fileprivate(set) var runs: Int
        /// The total time of all runs.
        public fileprivate(set) var total: Duration
        /// The time of the longest run.
        public fileprivate(set) var longest: Duration

        /// The average time of a run.
        public var average: Duration { total / runs }
    }

    private struct State {
        var entries: [String: Entry] = [:]
        var forgotten = 0
    }

    /// The shortest duration that is counted.
    public let slowerThan: Duration
    /// The highest number of statements that the report keeps.
    public let capacity: Int
    private let state = Mutex(State())

    /// Creates an empty report.
    /// - Parameters:
    ///   - slowerThan: The shortest duration that is counted; zero counts every run.
    ///   - capacity: The highest number of statements to keep, at least 1.
    public init(slowerThan: Duration = .zero, capacity: Int = 200) {
        self.slowerThan = slowerThan
        self.capacity = max(1, capacity)
    }

    /// The trace that fills this report, for `DatabaseOptions.trace`.
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

    /// The statements, in the order of their total time, the longest first.
    /// - Complexity: O(*n* log *n*), *n* statements.
    public var entries: [Entry] {
        state.withLock { Array($0.entries.values) }.sorted {
            ($1.total, $0.sql) < ($0.total, $1.sql)
        }
    }

    /// The number of evicted statements.
    public var forgotten: Int { state.withLock(\.forgotten) }

    /// Removes all measurements.
    public func reset() {
        state.withLock { $0 = State() }
    }

    /// Returns SQLite's plan for a statement, with one line for each step
    /// (https://sqlite.org/eqp.html).
    /// - Throws: `StoreError` if the statement no longer fits the schema.
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
    /// One line with the total time, the longest run, the number of runs, and the statement.
    public var description: String {
        "\(total) in \(runs) runs, longest \(longest): \(sql)"
    }
}
