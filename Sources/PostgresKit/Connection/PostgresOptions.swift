/// The time limits and other settings of a connection.
public struct PostgresOptions: Hashable, Sendable {
    /// The time that connecting may take in all.
    public var connecting: Duration
    /// The time that a statement may take; the server enforces it. Nil for no limit.
    public var statement: Duration?
    /// The time that a statement may wait for a lock; the server enforces it. Nil for no limit.
    public var lock: Duration?
    /// The time that an open transaction may do nothing; the server enforces it. Nil for no limit.
    public var idleInTransaction: Duration?
    /// The time that the server may take to answer; nil for no limit. The connection itself
    /// enforces it, for networks that fail silently, and is given up when the time is over.
    public var answer: Duration?
    /// Whether the server refuses writes. Losing the connection then never leaves a doubt.
    public var readOnly: Bool
    /// Whether row-level security may hide rows from the session. Without that, a statement fails on a
    /// table from which it would hide some.
    public var allowsHiddenRows: Bool
    /// The number of prepared statements to keep.
    public var preparedStatements: Int
    /// The name of the connection in the server's lists.
    public var name: String

    public init(
        connecting: Duration = .seconds(10), statement: Duration? = .seconds(30),
        lock: Duration? = .seconds(5), idleInTransaction: Duration? = .seconds(60),
        answer: Duration? = .seconds(40), readOnly: Bool = false, allowsHiddenRows: Bool = true,
        preparedStatements: Int = 200, name: String = "martlet"
    ) {
        self.connecting = connecting
        self.statement = statement
        self.lock = lock
        self.idleInTransaction = idleInTransaction
        self.answer = answer
        self.readOnly = readOnly
        self.allowsHiddenRows = allowsHiddenRows
        self.preparedStatements = preparedStatements
        self.name = name
    }

    /// The statements that a new session runs first. They give values and statements the same
    /// meaning under any settings of the server and the role. PostgreSQL does not compile their
    /// plans to machine code: a query of the catalog took 57 ms with that, and 2 ms without it.
    var settingStatements: String {
        func milliseconds(_ duration: Duration?) -> Int64 {
            guard let duration else { return 0 }
            let (seconds, attoseconds) = duration.components
            return max(1, min(seconds, 2_000_000) * 1_000 + attoseconds / 1_000_000_000_000_000)
        }
        return """
            SET DateStyle = 'ISO, YMD'; SET IntervalStyle = 'iso_8601'; SET TimeZone = 'UTC';
            SET extra_float_digits = 1; SET bytea_output = 'hex';
            SET standard_conforming_strings = on; SET jit = off;
            SET row_security = \(allowsHiddenRows ? "on" : "off");
            SET default_transaction_isolation = 'read committed';
            SET default_transaction_read_only = \(readOnly ? "on" : "off");
            SET statement_timeout = \(milliseconds(statement));
            SET lock_timeout = \(milliseconds(lock));
            SET idle_in_transaction_session_timeout = \(milliseconds(idleInTransaction))
            """
    }
}
