package import MartletModel
internal import MartletProtocol
package import MartletRules
package import MartletServerCore
package import PostgresKit

/// A data set in a PostgreSQL database: a storage that several servers may share.
///
/// Any number of processes may have one on the same database, and any other program may write to
/// the tables. A store is confined to its holder. Every call may wait for the server.
package final class PostgresStore {
    package let schema: Schema
    package let identity: String
    package let checks: ValueChecks
    /// The state of the tables when the storage was opened; see `StorageLook.tables`.
    package let tables: Int64
    private let connect: () throws(PostgresError) -> PostgresConnection
    private let names: TableNames?
    private let unsendable: UnsendableRows
    private let unreplicated: () -> Void
    /// The session; nil after a fault, until `recover` has made a new connection.
    private var current: DataSetSession?
    /// The last known head and floor, for the time without a session.
    private var last: (head: LogHead, floor: Revision)

    /// Opens the data set with a function that connects.
    /// - Parameters:
    ///   - names: The names that each transaction checks; nil if there are no policies.
    ///   - unsendable: Receives the rows that are left out of entries.
    ///   - unreplicated: Called after commits whose wait for a synchronous standby was cancelled.
    ///   - connect: Makes a connection. It is called again after a fault.
    /// - Throws: `StorageFault`, which says what to do.
    package init(
        checking names: TableNames? = nil, unsendable: UnsendableRows = UnsendableRows(),
        unreplicated: @escaping () -> Void = {},
        connect: @escaping () throws(PostgresError) -> PostgresConnection
    ) throws(StorageFault) {
        self.connect = connect
        self.names = names
        self.unsendable = unsendable
        self.unreplicated = unreplicated
        let (session, tables) = try Self.open(connect, names, unsendable)
        self.tables = tables
        schema = session.schema
        identity = session.identity
        checks = session.checks
        last = (session.head, session.floor)
        current = session
    }

    /// Opens the data set at an address.
    /// - Parameters:
    ///   - options: The options of its connections.
    ///   - names: The names that each transaction checks; nil if there are no policies.
    ///   - unsendable: Receives the rows that are left out of entries.
    ///   - unreplicated: Called after commits whose wait for a synchronous standby was cancelled.
    /// - Throws: `StorageFault`, which says what to do.
    package convenience init(
        _ address: PostgresAddress, _ options: PostgresOptions = PostgresOptions(),
        checking names: TableNames? = nil, unsendable: UnsendableRows = UnsendableRows(),
        unreplicated: @escaping () -> Void = {}
    ) throws(StorageFault) {
        try self.init(
            checking: names, unsendable: unsendable, unreplicated: unreplicated,
            connect: { () throws(PostgresError) in try PostgresConnection(address, options) })
    }

    private static func open(
        _ connect: () throws(PostgresError) -> PostgresConnection,
        _ names: TableNames?, _ unsendable: UnsendableRows
    ) throws(StorageFault) -> (DataSetSession, tables: Int64) {
        do {
            let connection = try connect()
            // This precedes reading the tables, so that the next look finds changes made meanwhile.
            let tables = try TableState.read(connection)
            let marks = try TriggerMarks.read(connection)
            let session = try DataSetSession(
                connection: connection, schema: try PostgresSchema.read(connection),
                state: tables, marks: marks, names: names, unsendable: unsendable)
            return (session, tables)
        } catch let error as PostgresError {
            throw StorageFault(error)
        } catch {
            throw StorageFault(.failed, "\(error)")
        }
    }

    /// The number of round trips on the present connection.
    package var trips: Int { current?.trips ?? 0 }

    /// Ends the session.
    package func close() {
        current?.close()
        current = nil
    }

    /// Runs `body` on the open session, and converts an error of PostgreSQL to a fault.
    func working<Result>(
        _ body: (DataSetSession) throws(PostgresError) -> Result
    ) throws(StorageFault) -> Result {
        guard let current else {
            throw StorageFault(.failed, "there is no connection after an earlier fault")
        }
        do throws(PostgresError) {
            return try body(current)
        } catch {
            guard !current.isOutdated, !current.bars(error), !current.takesCare(after: error),
                !current.hasEnded(with: error)
            else {
                throw StorageFault(.rolledBack, error.message)
            }
            throw StorageFault(error)
        }
    }
}

@available(*, unavailable)
extension PostgresStore: Sendable {}

extension PostgresStore: ServerStorage {
    package var head: LogHead { current?.head ?? last.head }
    package var floor: Revision { current?.floor ?? last.floor }
    package var isShared: Bool { true }

    package func changesMore(_ work: SetWork) -> Bool {
        current.map { SetExecution.captures(work, $0) } ?? false
    }

    package func begin(now: Int64, maxBytes: Int) throws(StorageFault) -> [LogEntry] {
        // If the connection was lost since the last batch, a new one is made before the batch
        // begins.
        if let current, !current.connection.isUsable() { try recover() }
        return try working { (session) throws(PostgresError) in
            guard try session.begin(), maxBytes > 0, session.barred.isEmpty else { return [] }
            return try session.drain(now: now, maxBytes: maxBytes)
        }
    }

    package func commit() throws(StorageFault) {
        defer { if current?.connection.takeUnreplicated() ?? 0 > 0 { unreplicated() } }
        try working { (session) throws(PostgresError) in try session.commit() }
    }

    package func recover() throws(StorageFault) {
        if let current, current.isOutdated {
            do throws(PostgresError) {
                try current.restart()
                return
            } catch {
                // Recovery continues as after any other failure.
                current.isOutdated = false
            }
        }
        let slow = current?.slow
        if let current {
            // Changes that are not known to be committed are not known to be stored either.
            last = (current.head, current.floor)
            current.close()
        }
        current = nil
        let (session, _) = try Self.open(connect, names, unsendable)
        // Policies were read for this schema, with the meanings of its columns.
        guard session.identity == identity, session.schema.fingerprint == schema.fingerprint,
            names == nil || session.schema == schema
        else {
            session.close()
            throw StorageFault(
                .changed,
                "the database's tables or its data set are not those the server opened")
        }
        if let slow {
            session.slow = slow
            session.isCareful = slow.isCareful
        }
        current = session
    }

    package func takeTrouble() -> StorageFault? {
        current?.trouble.take().map(StorageFault.init(puttingOff:))
    }

    /// False, because every noted external write counts as a change of its record.
    package var isExternalParted: Bool { false }

    package func look() throws(StorageFault) -> StorageLook {
        try working { (session) throws(PostgresError) in try session.look() }
    }

    package func devices(named names: [String]) throws(StorageFault) -> [String: KnownDevice] {
        try working { (session) throws(PostgresError) in try session.devices(named: names) }
    }

    package func register(
        clientID: String, principal: Principal, most: Int, now: Int64
    ) throws(StorageFault) -> KnownDevice? {
        try working { (session) throws(PostgresError) in
            try session.register(clientID, principal, most: most, now: now)
        }
    }

    package func acknowledge(_ sequence: Int64, clientID: String) throws(StorageFault) {
        try working { (session) throws(PostgresError) in
            try session.acknowledge(sequence, clientID: clientID)
        }
    }

    package func isDecided(_ identifier: String) throws(StorageFault) -> Bool {
        try working { (session) throws(PostgresError) in
            var statements = session.takePending()
            statements.append(StoredVerdicts.byIdentifier([identifier]))
            return try session.run(statements).last.map { $0.count > 0 } ?? false
        }
    }

    package func facts(for requests: [FactsRequest]) throws(StorageFault) -> [SetFacts] {
        try working { (session) throws(PostgresError) in try session.facts(for: requests) }
    }

    package func rows(
        of type: Int, where column: Int, isAmong values: [Value]?
    ) throws(StorageFault) -> [RuleRow] {
        try working { (session) throws(PostgresError) in
            try session.ruleRows(of: type, where: column, isAmong: values)
        }
    }

    package var views: any ViewStorage { PostgresViews(self) }

    package func apply(_ works: [SetWork]) throws(StorageFault) -> [SetOutcome] {
        try working { (session) throws(PostgresError) in try session.apply(works) }
    }

    package func remember(
        _ refusal: Refusal, of request: FactsRequest, now: Int64
    ) throws(StorageFault) {
        try working { (session) throws(PostgresError) in
            try session.remember(refusal, of: request, now: now)
        }
    }

    package func compact(
        through target: Revision, entries: Int, bytes: Int
    ) throws(StorageFault) -> Int {
        try working { (session) throws(PostgresError) in
            try session.compact(through: target, entries: entries, bytes: bytes)
        }
    }

    package func truths(
        of requests: [CurrentRowsRequest], setBytes: Int, maxBytes: Int
    ) throws(StorageFault) -> [SetTruth] {
        try working { (session) throws(PostgresError) in
            try session.truths(of: requests, setBytes: setBytes, maxBytes: maxBytes)
        }
    }
}
