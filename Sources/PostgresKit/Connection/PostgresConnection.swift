internal import CPostgres
public import ConnectionKit

/// One connection to a PostgreSQL server, confined to whoever holds it.
///
/// Every call blocks, at most as long as the options say; hold connections in a `KeptConnection`,
/// which gives each a queue of its own. Dates are ISO and times UTC in every session.
public final class PostgresConnection: Connectable {
    let wire: Wire
    public let address: PostgresAddress
    public let options: PostgresOptions
    var types = TypeCatalogue()
    var statements: PreparedStatements
    private var savepoints = 0
    private var isClosed = false

    public var wake: Wake { wire.wake }

    /// Connects.
    /// - Throws: `PostgresError` of a kind that says what is wrong with the address or the server.
    public init(
        _ address: PostgresAddress, _ options: PostgresOptions = PostgresOptions()
    ) throws(PostgresError) {
        self.address = address
        self.options = options
        statements = PreparedStatements(capacity: options.preparedStatements)
        wire = try Opening.open(address, options)
        try execute(options.settingStatements)
    }

    /// Whether the connection is gone, as far as is known without asking the server.
    public var isLost: Bool { isClosed || wire.isLost }

    /// Whether a transaction is open, a failed one too.
    public var isInTransaction: Bool {
        [PQTRANS_INTRANS, PQTRANS_INERROR].contains(PQtransactionStatus(wire.pointer))
    }

    /// Whether a statement of the open transaction has failed: only ROLLBACK is possible.
    public var hasFailedTransaction: Bool {
        PQtransactionStatus(wire.pointer) == PQTRANS_INERROR
    }

    /// The number of the server's process for this connection, as in `pg_stat_activity`.
    public var processNumber: Int32 { PQbackendPID(wire.pointer) }

    /// Such as 150018 for 15.18.
    public var serverVersion: Int32 { PQserverVersion(wire.pointer) }

    /// Whether the connection is encrypted.
    public var isEncrypted: Bool { PQsslInUse(wire.pointer) == 1 }

    /// Commits since the last call whose wait for synchronous standbys somebody cancelled: they hold on
    /// this server, and are gone where it fails before a standby has them.
    public func takeUnreplicated() -> Int { wire.takeUnreplicated() }

    /// Prepared statements kept now.
    public var preparedStatements: Int { statements.count }

    /// A server that is stopped tells its clients; what it said is read here, before new work.
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

    /// Ends the session; what is open is rolled back.
    public func close() {
        isClosed = true
        wire.finish()
    }

    public static func mayPass(_ error: any Error) -> Bool {
        (error as? PostgresError)?.mayPass ?? false
    }

    // MARK: - Statements

    /// Runs one statement, prepared and kept.
    /// - Parameter values: For $1, $2 and so on.
    /// - Throws: `PostgresError`. After one whose `endsConnection` is true nothing more can be done
    ///   here; after others an open transaction can only be rolled back.
    public func query(
        _ sql: String, _ values: [PostgresValue] = []
    ) throws(PostgresError) -> PostgresRows {
        let wasInTransaction = isInTransaction
        do {
            return try one(sql, values)
        } catch {
            // The server has forgotten the statement, or its table has changed: prepared anew it is
            // as good as any. In a transaction it is too late for that.
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

    /// Runs a script of any number of statements without values; all of it is one transaction
    /// unless the script says otherwise. What they return is dropped.
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
    /// - Returns: The last one.
    func finish(sql: String?) throws(PostgresError) -> PostgresRows? {
        var last: PostgresRows?
        var failure: PostgresError?
        while let result = try wire.result() {
            switch PQresultStatus(result) {
            case PGRES_FATAL_ERROR, PGRES_BAD_RESPONSE:
                if failure == nil { failure = wire.error(result, sql: sql) }
                PQclear(result)
                // A lost connection may go on giving results without end.
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
    public func begin() throws(PostgresError) {
        _ = try query("BEGIN")
    }

    /// Commits the open transaction.
    /// - Throws: `PostgresError` `.unknownOutcome` when the connection is lost meanwhile,
    ///   `.rolledBack` when a statement had failed, `.constraint` when a deferred one does not hold.
    public func commit() throws(PostgresError) {
        let answer = try query("COMMIT")
        guard answer.tag != "ROLLBACK" else {
            throw PostgresError(
                .rolledBack, "a statement of the transaction had failed; it was rolled back")
        }
    }

    /// Rolls the open transaction back. On a lost connection the server does it by itself.
    public func rollback() throws(PostgresError) {
        guard !isLost else { return }
        _ = try query("ROLLBACK")
    }

    /// Runs `body` in a transaction, which is rolled back when it throws.
    public func transaction<Answer>(_ body: () throws -> Answer) throws -> Answer {
        try begin()
        let answer: Answer
        do {
            answer = try body()
        } catch {
            // The error of `body` is the one to tell; a connection that cannot roll back is lost.
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

    /// Runs `body` under a savepoint of the open transaction: when it throws, what it did is undone
    /// and the transaction goes on.
    public func savepoint<Answer>(_ body: () throws -> Answer) throws -> Answer {
        savepoints += 1
        defer { savepoints -= 1 }
        // One name for each depth, so that the statements are prepared once.
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

/// A connection that is made again when it was lost.
public typealias PostgresSession = KeptConnection<PostgresConnection>
