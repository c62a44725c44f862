import MartletServerCore
import SQLiteKit

/// Ends SQLite's statements once a set has taken more steps than it may.
final class WorkBound {
    /// The number of steps after which SQLite calls the handler.
    private static let period = 1_000

    /// The most steps of one piece of work.
    var most = SetMeasure.mostSteps
    /// The most records that the deletes of one set may change.
    var mostAffected = SetMeasure.mostAffected
    /// The steps that are left; nil if nothing is bounded.
    private var left: Int?
    /// The steps of all bounded work so far.
    private(set) var steps = 0

    /// Watches the statements of a connection from now on.
    func watch(_ connection: Connection) {
        connection.stopStatements { [self] in isSpent() }
    }

    private func isSpent() -> Bool {
        guard let remaining = left else { return false }
        left = remaining - Self.period
        steps += Self.period
        return remaining <= 0
    }

    /// Runs some work. When its steps are spent, its current statement ends with an error that is
    /// `isInterrupted`.
    func bounded<Result>(
        _ body: () throws(SQLiteError) -> Result
    ) throws(SQLiteError) -> Result {
        left = most
        defer { left = nil }
        return try body()
    }
}

extension EmbeddedSession {
    /// Runs the work of a set, and ends it with an error that is `isInterrupted` if it takes too
    /// many steps. If the statement writes, SQLite also rolls back its transaction.
    func bounded<Result>(
        _ body: () throws(SQLiteError) -> Result
    ) throws(SQLiteError) -> Result {
        try bound.bounded(body)
    }
}
