/// How patient a connection is.
public struct PostgresOptions: Hashable, Sendable {
    /// For making the connection, in all.
    public var connecting: Duration
    /// For a statement, kept by the server; nil for no limit.
    public var statement: Duration?
    /// For a lock, kept by the server; nil for no limit.
    public var lock: Duration?
    /// For a transaction that is open and does nothing, kept by the server; nil for no limit.
    public var idleInTransaction: Duration?
    /// For an answer of the server, kept here: for networks that fail without a word. The
    /// connection is given up afterwards. nil for no limit.
    public var answer: Duration?
    /// Whether the server refuses writes, so that losing a connection never leaves a doubt.
    public var readOnly: Bool
    /// Prepared statements kept.
    public var preparedStatements: Int
    /// What the server's lists call this connection.
    public var name: String

    public init(
        connecting: Duration = .seconds(10), statement: Duration? = .seconds(30),
        lock: Duration? = .seconds(5), idleInTransaction: Duration? = .seconds(60),
        answer: Duration? = .seconds(40), readOnly: Bool = false, preparedStatements: Int = 200,
        name: String = "martlet"
    ) {
        self.connecting = connecting
        self.statement = statement
        self.lock = lock
        self.idleInTransaction = idleInTransaction
        self.answer = answer
        self.readOnly = readOnly
        self.preparedStatements = preparedStatements
        self.name = name
    }

    /// What a new session sets, so that values and statements mean the same whatever the server's
    /// and the role's settings are.
    var settingStatements: String {
        func milliseconds(_ duration: Duration?) -> Int64 {
            guard let duration else { return 0 }
            let (seconds, attoseconds) = duration.components
            return max(1, min(seconds, 2_000_000) * 1_000 + attoseconds / 1_000_000_000_000_000)
        }
        return """
            SET DateStyle = 'ISO, YMD'; SET IntervalStyle = 'iso_8601'; SET TimeZone = 'UTC';
            SET extra_float_digits = 1; SET bytea_output = 'hex';
            SET standard_conforming_strings = on;
            SET default_transaction_isolation = 'read committed';
            SET default_transaction_read_only = \(readOnly ? "on" : "off");
            SET statement_timeout = \(milliseconds(statement));
            SET lock_timeout = \(milliseconds(lock));
            SET idle_in_transaction_session_timeout = \(milliseconds(idleInTransaction))
            """
    }
}
