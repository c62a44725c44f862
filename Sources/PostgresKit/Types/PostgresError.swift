/// A failure of a PostgreSQL server, or on the way to it. It says what happened, and what to do.
public struct PostgresError: Error, Hashable, Sendable {
    /// The kind of a failure, divided by what can be done about it.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// The URL cannot be read, or names a setting that does not exist.
        case malformedAddress
        /// No server answers at the address.
        case unreachable
        /// Client and server could not agree on TLS, or the client does not trust the certificate.
        case untrusted
        /// The user is unknown, the password is wrong, or `pg_hba.conf` does not let this client
        /// in.
        case unauthorized
        /// There is no such database.
        case noDatabase
        /// Too many connections are open.
        case crowded
        /// The server is starting, stopping or recovering.
        case restarting
        /// The connection was lost, and the work under way has not happened.
        case lost
        /// The connection was lost during a commit, which may or may not have happened.
        case unknownOutcome
        /// The role lacks a right.
        case forbidden
        /// The server is a standby, or the transaction is read-only.
        case readOnly
        /// The disk or the quota is full.
        case full
        /// The server has no memory or other resource for this.
        case exhausted
        /// The transaction did not get a lock in time, or it conflicted with another one. It can be
        /// tried again.
        case busy
        /// The statement took longer than its limit.
        case timedOut
        /// The statement was stopped because its task was cancelled.
        case cancelled
        /// The statement violated a constraint of the tables.
        case constraint
        /// A value does not fit its type.
        case invalidValue
        /// The statement is wrong: it has a syntax error, or names something that does not exist.
        case statement
        /// The shape of a table has changed since the statement was prepared.
        case stalePlan
        /// The server did not run this statement because an earlier one of the same segment failed.
        case skipped
        /// COMMIT was sent, but the transaction had failed before and was rolled back.
        case rolledBack
        /// The program used the connection wrongly.
        case misuse
        /// The failure is of no other kind.
        case other
    }

    public let kind: Kind
    /// The server's code of five characters, as in the manual's appendix “PostgreSQL Error Codes”;
    /// nil if the error is not the server's.
    public let sqlState: String?
    /// The message of the server or the library. It may quote values; `description` leaves such a
    /// message out.
    public let message: String
    /// The statement, with placeholders in place of values.
    public let sql: String?
    public var schema: String?
    public var table: String?
    public var column: String?
    public var constraint: String?
    /// Whether the error is about a setting with a value that it cannot have.
    package var isOfSetting = false

    public init(_ kind: Kind, _ message: String, sqlState: String? = nil, sql: String? = nil) {
        self.kind = kind
        self.message = message
        self.sqlState = sqlState
        self.sql = sql
    }

    public var isUniqueViolation: Bool { sqlState == "23505" }
    public var isForeignKeyViolation: Bool { sqlState == "23503" }
    public var isNotNullViolation: Bool { sqlState == "23502" }
    public var isCheckViolation: Bool { sqlState == "23514" }
    public var isDeadlock: Bool { sqlState == "40P01" }

    /// Whether the connection is gone.
    public var endsConnection: Bool {
        switch kind {
        case .malformedAddress, .unreachable, .untrusted, .unauthorized, .noDatabase, .crowded,
            .restarting, .lost, .unknownOutcome:
            true
        default: false
        }
    }

    /// Whether the same work may succeed a little later. False if it is unknown whether the work
    /// has happened: look first.
    public var mayPass: Bool {
        switch kind {
        case .unreachable, .crowded, .restarting, .lost, .full, .exhausted, .busy, .stalePlan: true
        default: false
        }
    }

    /// A sentence about what to do.
    public var remedy: String {
        if sqlState == "42P05" {
            return """
                Connect to PostgreSQL itself, or to a pooler in session mode: in another mode a session \
                holds the statements that somebody else prepared.
                """
        }
        if kind == .forbidden, message.contains("row-level security") {
            return """
                Let the role see all rows: ALTER ROLE … BYPASSRLS as a superuser, or ALTER TABLE … NO FORCE ROW \
                LEVEL SECURITY if it owns the tables.
                """
        }
        return switch kind {
        case .malformedAddress:
            "Write the address as postgresql://USER:PASSWORD@HOST:PORT/DATABASE."
        case .unreachable: "Check host and port, and that the server runs and listens there."
        case .untrusted:
            "Check sslmode and sslrootcert in the address against the server's certificate."
        case .unauthorized: "Check user and password in the address, and the server's pg_hba.conf."
        case .noDatabase: "Create the database, or name another in the address."
        case .crowded:
            """
            Try again, or raise max_connections, or the CONNECTION LIMIT of the role (ALTER ROLE) or \
            the database (ALTER DATABASE); a server takes about five for each data set.
            """
        case .restarting: "Try again in a moment."
        case .lost: "Try again; nothing has happened."
        case .unknownOutcome: "Look whether it has happened before it is tried again."
        case .forbidden: "Grant the role the right that is missing."
        case .readOnly: "Connect to the primary server (target_session_attrs=read-write)."
        case .full: "Make room on the server's disk."
        case .exhausted: "Look at the server's memory and limits."
        case .busy: "Try again; another transaction was in the way."
        case .timedOut: "Try again, or allow the statement more time."
        case .cancelled: "Nothing; somebody no longer wanted it."
        case .constraint: "Change the values so that the tables' constraints hold."
        case .invalidValue: "Send a value that the column's type can hold."
        case .statement: "Check the statement against the tables of this database."
        case .stalePlan: "Try again; the statement will be prepared again."
        case .skipped: "Look at the statement before it that failed."
        case .rolledBack: "Look at the statement that failed in this transaction."
        case .misuse: "Report this; the program used the connection wrongly."
        case .other: "See the server's log."
        }
    }
}

extension PostgresError: CustomStringConvertible, CustomDebugStringConvertible {
    /// The error for logs, without values of any row.
    public var description: String {
        let state = sqlState.map { " \($0)" } ?? ""
        let suffix = sql.map { " in “\($0)”" } ?? ""
        let words =
            isOfSetting ? wordsOfSetting : mayQuoteValues ? kind.rawValue : message
        return "PostgreSQL error\(state): \(words)\(suffix)"
    }

    /// The error with the server's message, which may quote values.
    public var debugDescription: String {
        "PostgreSQL error \(sqlState ?? kind.rawValue): \(message)\(sql.map { " in “\($0)”" } ?? "")"
    }

    /// The message about a setting, without the value that it was given.
    package var wordsOfSetting: String { String(message.prefix { $0 != ":" }) }

    /// Whether the message may quote values: data exceptions quote the unreadable text, and
    /// functions raise any text.
    private var mayQuoteValues: Bool {
        guard let sqlState else { return false }
        return ["22", "P0"].contains(sqlState.prefix(2))
    }
}

extension PostgresError.Kind {
    /// The kind of failure that a code of the server means on a connection that continues to work.
    public init(sqlState: String) {
        switch sqlState {
        case "28P01", "28000": self = .unauthorized
        case "3D000": self = .noDatabase
        case "53300": self = .crowded
        case "57P01", "57P02", "57P03", "57P05": self = .restarting
        case "42501": self = .forbidden
        case "25006": self = .readOnly
        case "53100", "53400": self = .full
        case "55P03", "40001", "40P01", "55006": self = .busy
        case "57014": self = .timedOut
        case "26000": self = .stalePlan
        default:
            switch sqlState.prefix(2) {
            case "08": self = .lost
            case "22": self = .invalidValue
            case "23", "44": self = .constraint
            case "42": self = .statement
            case "53", "54": self = .exhausted
            default: self = .other
            }
        }
    }
}
