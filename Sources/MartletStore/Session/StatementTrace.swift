internal import SQLiteKit

/// Tells of the statements a database runs. Values are left out unless asked for.
public struct StatementTrace: Sendable {
    /// One run of one statement.
    public struct Run: Sendable {
        /// The statement, with `?` in place of values.
        public let sql: String
        /// The statement with its values; nil unless asked for.
        public let sqlWithValues: String?
        /// From its first step to its end.
        public let duration: Duration
    }

    /// Only statements that take at least this long are told of.
    public var slowerThan: Duration
    /// Whether values are shown. They may be people's data: never in a released app.
    public var includesValues: Bool
    /// Called on the connection's queue, after each run.
    public var handler: @Sendable (Run) -> Void

    /// - Parameters:
    ///   - slowerThan: Leave out what takes less; zero for every statement.
    ///   - includesValues: Whether values are shown. They may be people's data.
    ///   - handler: Called on the connection's queue, after each run.
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
