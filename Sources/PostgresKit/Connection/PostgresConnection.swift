internal import CPostgres
public import ConnectionKit

/// A connection to a PostgreSQL server, confined to its holder.
///
/// Every call blocks, at most for the time that the options allow. Hold connections in a
/// `KeptConnection`, which gives each its own queue. In every session, dates are ISO and times are
/// UTC.
///
/// ```swift
/// let address = try PostgresAddress("postgresql://app@localhost/shop")
/// let connection = try PostgresConnection(address)
/// let rows = try connection.query("SELECT name FROM clubs WHERE id = $1", [.integer(7)])
/// for row in 0..<rows.count { print(try rows.text(row, 0)) }
/// ```
public final class PostgresConnection: Connectable {
    let wire: Wire
    public let address: PostgresAddress
    public let options: PostgresOptions
    var types = TypeCatalogue()
    var statements: PreparedStatements
    private var savepoints = 0
    private var isClosed = false

    public var wake: Wake { wire.wake }

    /// Connects to a server, and sets the session's settings.
    /// - Throws: `PostgresError`, with a kind that says what is wrong with the address or the
    ///   server.
    public init(
        _ address: PostgresAddress, _ options: PostgresOptions = PostgresOptions()
    ) throws(PostgresError) {
        self.address = address
        self.options = options
        statements = PreparedStatements(capacity: options.preparedStatements)
        wire = try Opening.open(address, options)
        try execute(options.settingStatements)
    }

    /// Whether the connection is gone, as far as this can be known without asking the server.
    public var isLost: Bool { isClosed || wire.isLost }

    /// Whether a transaction is open. A failed one counts, too.
    public var isInTransaction: Bool {
        [PQTRANS_INTRANS, PQTRANS_INERROR].contains(PQtransactionStatus(wire.pointer))
    }

    /// Whether a statement of the open transaction has failed. Then only ROLLBACK is possible.
    public var hasFailedTransaction: Bool {
        PQtransactionStatus(wire.pointer) == PQTRANS_INERROR
    }

    /// The number of the server's process for this connection, as in `pg_stat_activity`.
    public var processNumber: Int32 { PQbackendPID(wire.pointer) }

    /// The server's version as a number, such as 150018 for 15.18.
    public var serverVersion: Int32 { PQserverVersion(wire.pointer) }

    /// Whether the connection is encrypted.
    public var isEncrypted: Bool { PQsslInUse(wire.pointer) == 1 }

    /// Returns the number of commits since the last call whose wait for synchronous standbys was
    /// cancelled. They hold on this server, but are gone if it fails before a standby has them.
    public func takeUnreplicated() -> Int { wire.takeUnreplicated() }

    /// The number of prepared statements that are kept now.
    public var preparedStatements: Int { statements.count }

    /// Whether the connection can be used. A server that stops tells its clients, so this reads the
    /// server's last message before new work begins.
    public func isUsable() -> Bool {
        for _ in 0..<100 {
            guard !isLost, PQtransactionStatus(wire.pointer) == PQTRANS_IDLE else { return false }
            guard let hasInput = try? wire.listen(.zero) else { return false }
            guard hasInput else { return true }
            guard PQconsumeInput(wire.pointer) == 1 else { return false }
            _ = PQisBusy(wire.pointer)
        }
        return true
    }

    /// Ends the session. The server rolls back an open transaction.
    public func close() {
        isClosed = true
        wire.finish()
    }

    public static func mayPass(_ error: any Error) -> Bool {
        (error as? PostgresError)?.mayPass ?? false
    }

    // MARK: - Statements

    /// Runs one statement, which is prepared and kept for later calls.
    /// - Parameter values: The values of $1, $2 and so on.
    /// - Throws: `PostgresError`. If its `endsConnection` is true, the connection cannot be used
    ///   any more. After any other error an open transaction can only be rolled back.
    public func query(
        _ sql: String, _ values: [PostgresValue] = []
    ) throws(PostgresError) -> PostgresRows {
        let wasInTransaction = isInTransaction
        do {
            return try one(sql, values)
        } catch {
            // The server has forgotten the statement, or its table has changed. The statement works
            // when it is prepared again, but in a transaction it is too late for that.
            guard error.kind == .stalePlan, !wasInTransaction else { throw error }
            return try one(sql, values)
        }
    }

    private func one(
        _ sql: String, _ values: [PostgresValue]
    ) throws(PostgresError) -> PostgresRows {
        let answers = try pipeline([[PostgresStatement(sql, values)]])
        return try answers[0][0].get()
    }

    /// Runs a script of any number of statements without values, and drops their results. The
    /// script is one transaction, unless it controls transactions itself.
    /// - Throws: `PostgresError`; the first failure ends the script.
    public func execute(_ script: String) throws(PostgresError) {
        try check()
        let leavesDoubt = StatementWord.leavesDoubt(
            script: script, isInTransaction: isInTransaction)
        wire.begin(mayCommit: leavesDoubt && !options.readOnly)
        guard PQsendQuery(wire.pointer, script) == 1 else { throw wire.lost() }
        try wire.flush()
        _ = try finish(sql: nil)
    }

    /// Reads results to their end.
    /// - Returns: The last result; nil if there is none.
    func finish(sql: String?) throws(PostgresError) -> PostgresRows? {
        var last: PostgresRows?
        var failure: PostgresError?
        while let result = try wire.result() {
            switch PQresultStatus(result) {
            case PGRES_FATAL_ERROR, PGRES_BAD_RESPONSE:
                if failure == nil { failure = wire.error(result, sql: sql) }
                PQclear(result)
                // A lost connection may return results without end.
                if wire.isLost { throw failure ?? wire.lost(sql: sql) }
            case PGRES_COPY_IN, PGRES_COPY_OUT, PGRES_COPY_BOTH:
                PQclear(result)
                failure = PostgresError(.misuse, "COPY has calls of its own", sql: sql)
                try refuseCopy()
            default:
                last = PostgresRows(result, types)
            }
        }
        if let failure { throw failure }
        if wire.isLost { throw wire.lost(sql: sql) }
        return last
    }

    func check() throws(PostgresError) {
        guard !isClosed else { throw PostgresError(.misuse, "the connection was closed") }
        guard !wire.isLost else {
            throw PostgresError(.lost, "the connection was lost before this began")
        }
    }

    // MARK: - Transactions

    /// Begins a transaction.
    /// - Throws: `PostgresError` if the statement fails or the connection is lost.
    public func begin() throws(PostgresError) {
        _ = try query("BEGIN")
    }

    /// Commits the open transaction.
    /// - Throws: `PostgresError`: `.unknownOutcome` if the connection is lost meanwhile,
    ///   `.rolledBack` if a statement had failed, `.constraint` if a deferred constraint does not
    ///   hold.
    public func commit() throws(PostgresError) {
        let answer = try query("COMMIT")
        guard answer.tag != "ROLLBACK" else {
            throw PostgresError(
                .rolledBack, "a statement of the transaction had failed; it was rolled back")
        }
    }

    /// Rolls the open transaction back. If the connection is lost, the server does so without this
    /// call.
    /// - Throws: `PostgresError` if the statement fails or the connection is lost meanwhile.
    public func rollback() throws(PostgresError) {
        guard !isLost else { return }
        _ = try query("ROLLBACK")
    }

    /// Runs `body` in a transaction, which is rolled back if `body` throws.
    /// - Throws: The error of `body`, or the `PostgresError` of BEGIN or COMMIT.
    public func transaction<Answer>(_ body: () throws -> Answer) throws -> Answer {
        try begin()
        let answer: Answer
        do {
            answer = try body()
        } catch {
            // The caller needs the error of `body`. A connection that cannot roll back is lost.
            try? rollback()
            throw error
        }
        do {
            try commit()
        } catch {
            if isInTransaction { try? rollback() }
            throw error
        }
        return answer
    }

    /// Runs `body` under a savepoint of the open transaction. If `body` throws, its changes are
    /// undone and the transaction continues.
    /// - Throws: The error of `body`, or the `PostgresError` of a statement about the savepoint.
    public func savepoint<Answer>(_ body: () throws -> Answer) throws -> Answer {
        savepoints += 1
        defer { savepoints -= 1 }
        // Each depth has one name, so that the statements are prepared once.
        let name = "martlet_\(savepoints)"
        _ = try query("SAVEPOINT \(name)")
        do {
            let answer = try body()
            _ = try query("RELEASE SAVEPOINT \(name)")
            return answer
        } catch {
            if !isLost {
                _ = try query("ROLLBACK TO SAVEPOINT \(name)")
                _ = try query("RELEASE SAVEPOINT \(name)")
            }
            throw error
        }
    }
}

@available(*, unavailable)
extension PostgresConnection: Sendable {}

/// A connection that is made again after it was lost.
public typealias PostgresSession = KeptConnection<PostgresConnection>
