internal import SQLiteKit

/// Reports the statements that a database runs. It leaves out values unless the app asks for them.
///
/// ```swift
/// let trace = StatementTrace(slowerThan: .milliseconds(50)) { print($0.sql, $0.duration) }
/// ```
public struct StatementTrace: Sendable {
    /// One run of one statement.
    public struct Run: Sendable {
        /// The statement, with `?` in place of values.
        public let sql: String
        /// The statement with its values; nil unless the app asked for them.
        public let sqlWithValues: String?
        /// The time from the statement's first step to its end.
        public let duration: Duration
    }

    /// The shortest duration that is reported.
    public var slowerThan: Duration
    /// Whether reports contain values. Values may be personal data, so a released app must not
    /// set it.
    public var includesValues: Bool
    /// The handler of reports. The connection calls it on its queue, after each run.
    public var handler: @Sendable (Run) -> Void

    /// Creates a trace.
    /// - Parameters:
    ///   - slowerThan: The shortest duration that is reported; zero for every statement.
    ///   - includesValues: Whether reports contain values, which may be personal data.
    ///   - handler: The handler of reports. The connection calls it on its queue, after each run.
    public init(
        slowerThan: Duration = .zero, includesValues: Bool = false,
        _ handler: @escaping @Sendable (Run) -> Void
    ) {
        self.slowerThan = slowerThan
        self.includesValues = includesValues
        self.handler = handler
    }

    package func attach(to session: Session) {
        let trace = self
        session.connection.observeStatements(includesValues: includesValues) { run in
            let duration = Duration.nanoseconds(run.nanoseconds)
            guard duration >= trace.slowerThan else { return }
            trace.handler(
                Run(sql: run.sql, sqlWithValues: run.expandedSQL, duration: duration))
        }
    }
}
