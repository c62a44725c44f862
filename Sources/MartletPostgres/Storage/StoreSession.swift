import MartletModel
import MartletProtocol
import MartletServerCore
import PostgresKit

/// A connection, and what is kept in memory of the data set. Thrown away after a fault.
final class StoreSession {
    let connection: PostgresConnection
    let model: PostgresModel
    let tables: [PostgresTable]
    let identity: String
    let checks: ValueChecks
    /// The database's encoding.
    let encoding: String
    /// Whether the database has characters, as far as that has been looked up.
    var storable: [Unicode.Scalar: Bool] = [:]
    /// The state of the tables when the session was opened; see `TableState`.
    let state: Int64
    /// The first error of the server's for which a set was put off alone, until the store takes it.
    var trouble: PostgresError?
    /// Whether the open transaction has found that the database's disk has room.
    var hasFoundRoom = false
    /// Hears of rows that sets leave behind and no device can be sent.
    let unsendable: UnsendableRows
    private let external: ExternalDrain
    /// Where other programs' writes are read from the write-ahead log: waits for whoever reads it.
    let logicalWait: LogicalWait?
    /// Of the open transaction: rows by transactions below it are in the log, or noted; nil where
    /// triggers note them all.
    private(set) var horizon: UInt64?
    /// The open transaction has to be given up and done anew: it has seen the log without what other
    /// programs had written before it.
    var isOutdated = false
    /// Whether the open transaction is one that is done anew.
    private(set) var isAnew = false

    /// Of the open transaction, else as of the last look.
    var head: LogHead
    var floor: Revision
    /// What the open transaction still has to write.
    var pending = PendingWrites()
    /// The state of the tables that `model` is of; see `PostgresSchema.version`.
    private let version: Int64
    /// Records of the open transaction that another program is changing.
    var contested: Set<RecordAddress> = []
    /// The types whose tables another transaction has locked, also against readers.
    var barred: Set<Int> = []
    /// Since the last commit: whether a lock could not be had, and whether its holder has been
    /// looked for.
    var barring = (isDue: false, isDone: false)
    /// Keys that PostgreSQL gave out and no record has yet.
    var keys: ReservedKeys
    /// Devices met; what is said of them here does not change but for `acknowledged`, which may
    /// be behind.
    var devices: [String: KnownDevice] = [:]
    /// Savepoints of the open transaction that stand: `martlet_0` and so on.
    var openSavepoints = false
    /// The session's settings as the transaction began with them; nil before the first, and after one that
    /// was given up.
    var settings: SessionSettings?
    /// Whether each set goes alone: in the last try of this batch, something failed outside all sets.
    var isCareful = false
    /// What ran with writes to each table before `model` was read; see `TriggerMarks`.
    private let marks: [UInt32: Int64]
    /// Types whose tables got triggers, or other ones, since: each set that writes to them captures.
    private(set) var triggered: Set<Int> = []
    /// Types to whose tables the open transaction has written without capturing.
    var uncaptured: Set<Int> = []
    /// Sets that took too long, and the tables that they wrote to.
    var slow = SlowSets()
    /// The sets that are being carried out.
    var underway: [SetWork] = []
    /// When the last round trip with sets began.
    var tried = ContinuousClock.now
    /// Round trips made, for measurements.
    private(set) var trips = 0

    private static let mostDevices = 10_000

    /// How a session of the storage differs from others: its statements find single rows by their
    /// keys, so plans are made once, and never from what the tables looked like when they were
    /// empty.
    static let settings = """
        SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET jit = off
        """

    /// How long the storage waits for a row or a table that another program has locked, in
    /// milliseconds: all devices wait with it.
    static let lockMilliseconds = 500

    init(
        connection: PostgresConnection, schema: PostgresSchema, state: Int64,
        marks: [UInt32: Int64], unsendable: UnsendableRows
    ) throws(PostgresError) {
        self.connection = connection
        tables = schema.tables
        version = schema.version
        self.state = state
        self.marks = marks
        self.unsendable = unsendable
        let wait = try LogicalState.read(connection).map { _ in LogicalWait(connection.address) }
        logicalWait = wait
        external = ExternalDrain(
            schema: schema.schema, tables: schema.tables, unsendable: unsendable,
            catchUp: wait.map { wait in { (try? wait.wait()) ?? false } })
        try connection.execute(Self.settings)
        model = try PostgresModel(schema: schema.schema, tables: tables, connection)
        checks = schema.checks
        keys = ReservedKeys(count: tables.count)
        head = LogHead(revision: 0, hash: LineageHash(stored: []))
        floor = 0
        // Where the connection was lost in the middle of a commit, the server may not know it yet:
        // this waits for the row.
        let row = try connection.query(
            """
            SELECT revision, floor, hash, identity, format, current_setting('server_encoding') \
            FROM _martlet.dataset WHERE number = 1 FOR SHARE
            """)
        guard row.count == 1 else {
            throw PostgresError(
                .statement, "the database has no data set", sqlState: "3F000")
        }
        identity = try row.text(0, 3)
        encoding = try row.text(0, 5)
        guard try row.integer(0, 4) <= MartletTables.format else {
            throw PostgresError(
                .misuse, "the data set was made by a newer Martlet; install that one")
        }
        try take(row)
    }

    var schema: Schema { model.schema }

    /// Takes over what the counter row says.
    private func take(_ row: PostgresRows) throws(PostgresError) {
        head = LogHead(
            revision: try row.integer(0, 0), hash: LineageHash(stored: try row.binary(0, 2)))
        floor = try row.integer(0, 1)
    }

    /// Runs statements in one round trip.
    /// - Returns: Their answers; those behind a failure in a segment are failures too.
    func run(
        _ segments: [[PostgresStatement]]
    ) throws(PostgresError) -> [[PostgresConnection.Answer]] {
        trips += 1
        return try connection.pipeline(segments)
    }

    /// Runs statements of which none may fail, in one round trip.
    func run(_ statements: [PostgresStatement]) throws(PostgresError) -> [PostgresRows] {
        guard !statements.isEmpty else { return [] }
        let answers = try run([statements])
        var rows: [PostgresRows] = []
        rows.reserveCapacity(statements.count)
        for answer in answers[0] { rows.append(try answer.get()) }
        return rows
    }

    /// What has to be written before something is read that depends on it.
    func takePending() -> [PostgresStatement] {
        let statements = pending.statements(model.forms.map(\.table), floor: floor)
        pending = PendingWrites()
        return statements
    }
}

@available(*, unavailable)
extension StoreSession: Sendable {}

// MARK: - Transactions

extension StoreSession {
    private static let counter = """
        SELECT revision, floor, hash, tables FROM _martlet.dataset WHERE number = 1 FOR UPDATE
        """

    /// Takes the counter row: from here on this is the one writer.
    /// - Returns: Whether other programs have written what is not in the log yet.
    func begin() throws(PostgresError) -> Bool {
        pending = PendingWrites()
        contested = []
        openSavepoints = false
        hasFoundRoom = false
        uncaptured = []
        underway = []
        var statements = [
            PostgresStatement("BEGIN"), PostgresStatement(Self.counter),
            PostgresStatement(
                """
                SELECT \(ExternalDrain.isPending), set_config('martlet.applying', 'on', true), \
                set_config('lock_timeout', '\(Self.lockMilliseconds)', true)
                """),
        ]
        if !model.deferring.isEmpty {
            statements.append(PostgresStatement("SET CONSTRAINTS ALL DEFERRED"))
        }
        let settingsPlace = settings == nil ? statements.count : nil
        if settingsPlace != nil { statements.append(SessionSettings.reading) }
        if logicalWait != nil {
            // What is written from here on is no external write to whoever reads the write-ahead log.
            statements.append(
                PostgresStatement(
                    "SELECT horizon, \(LogicalState.ownMark)::text FROM _martlet.capture"))
        }
        let answers = try run(statements)
        guard answers[1].count == 1 else {
            throw PostgresError(.other, "_martlet.dataset is empty")
        }
        try take(answers[1])
        if let settingsPlace { settings = try SessionSettings(answers[settingsPlace]) }
        if !barred.isEmpty { try lookForLocks() }
        // What another process knows of new columns and tables, this one would leave out of entries,
        // and nobody would hear of it again.
        guard try answers[1].integer(0, 3) == version else {
            throw PostgresError(
                .statement, "tables or columns have come or gone", sqlState: "42P01")
        }
        if logicalWait != nil, let row = answers.last, row.count == 1 {
            horizon = UInt64(bitPattern: try row.integer(0, 0))
        }
        return try answers[2].boolean(0, 0)
    }

    /// Gives the open transaction up, so that another can begin.
    func restart() throws(PostgresError) {
        try connection.rollback()
        isOutdated = false
        isAnew = true
        settings = nil
        trouble = nil
        pending = PendingWrites()
        devices.removeAll()
        openSavepoints = false
        let now = try TriggerMarks.read(connection)
        triggered = Set(tables.indices.filter { now[tables[$0].relation] != mark(of: $0) })
        if barring.isDue {
            barring = (false, true)
            try lookForLocks()
        }
        let row = try connection.query(
            "SELECT revision, floor, hash FROM _martlet.dataset WHERE number = 1")
        guard row.count == 1 else { throw PostgresError(.other, "_martlet.dataset is empty") }
        try take(row)
    }

    private func mark(of type: Int) -> Int64 { marks[tables[type].relation] ?? 0 }

    /// Whether rows may change behind statements that write to a type's table.
    func changesBehind(_ type: Int) -> Bool {
        tables[type].changesBehind || triggered.contains(type)
    }

    /// Ends the connections.
    func close() {
        logicalWait?.close()
        connection.close()
    }

    /// Takes into the log what other programs have written.
    func drain(now: Int64, maxBytes: Int) throws(PostgresError) -> [LogEntry] {
        let entries = try external.entries(
            on: connection, head: head, now: now, maxBytes: maxBytes)
        if let last = entries.last {
            head = LogHead(revision: last.revision, hash: last.hash)
        }
        return entries
    }

    func commit() throws(PostgresError) {
        var statements = takePending()
        if openSavepoints, let settings {
            // Nothing of a set's runs behind the checks.
            statements.append(PostgresStatement("SET CONSTRAINTS ALL IMMEDIATE"))
            if !uncaptured.isEmpty {
                statements.append(
                    TriggerMarks.check(
                        uncaptured.sorted().map { (tables[$0].relation, mark(of: $0)) }))
            }
            statements.append(settings.check)
        }
        statements.append(PostgresStatement("COMMIT"))
        let answers = try run(statements)
        guard answers.last?.tag != "ROLLBACK" else {
            throw PostgresError(.rolledBack, "the transaction had failed before its commit")
        }
        openSavepoints = false
        isAnew = false
        isCareful = false
        barring = (false, false)
    }

    func look() throws(PostgresError) -> StorageLook {
        let row = try run([
            PostgresStatement(
                """
                SELECT revision, floor, hash, \(ExternalDrain.isPending) FROM _martlet.dataset \
                WHERE number = 1
                """)
        ])[0]
        guard row.count == 1 else { throw PostgresError(.other, "_martlet.dataset is empty") }
        if !connection.isInTransaction { try take(row) }
        return StorageLook(
            head: LogHead(
                revision: try row.integer(0, 0), hash: LineageHash(stored: try row.binary(0, 2))),
            floor: try row.integer(0, 1), hasExternalWrites: try row.boolean(0, 3))
    }
}

// MARK: - Devices

extension StoreSession {
    func devices(named names: [String]) throws(PostgresError) -> [String: KnownDevice] {
        var found: [String: KnownDevice] = [:]
        var wanted: Set<String> = []
        for name in names {
            if let device = devices[name] { found[name] = device } else { wanted.insert(name) }
        }
        guard !wanted.isEmpty else { return found }
        let rows = try run([
            PostgresStatement(
                """
                SELECT client_id, number, principal, acknowledged FROM _martlet.devices \
                WHERE client_id = ANY ($1::text[])
                """, [PendingWrites.texts(wanted.sorted())])
        ])[0]
        for row in 0..<rows.count {
            let device = KnownDevice(
                number: try rows.integer(row, 1), principal: try rows.text(row, 2),
                acknowledged: try rows.integer(row, 3))
            let name = try rows.text(row, 0)
            remember(device, name)
            found[name] = device
        }
        return found
    }

    func register(
        _ clientID: String, _ principal: Principal, most: Int, now: Int64
    ) throws(PostgresError) -> KnownDevice? {
        if let known = try devices(named: [clientID])[clientID] { return known }
        let rows = try run([
            PostgresStatement(
                """
                INSERT INTO _martlet.devices (client_id, principal, acknowledged, since) \
                SELECT $1::text, $2::text, 0, $3::bigint WHERE $4::bigint > (\
                SELECT count(*) FROM (SELECT FROM _martlet.devices WHERE principal = $2::text \
                LIMIT $4::bigint) AS d) RETURNING number
                """,
                [
                    .text(clientID), .text(principal.identity), .integer(now),
                    .integer(Int64(clamping: most)),
                ])
        ])[0]
        guard rows.count > 0 else { return nil }
        let device = KnownDevice(
            number: try rows.integer(0, 0), principal: principal.identity, acknowledged: 0)
        remember(device, clientID)
        return device
    }

    private func remember(_ device: KnownDevice, _ clientID: String) {
        if devices.count >= Self.mostDevices { devices.removeAll() }
        devices[clientID] = device
    }

    func acknowledge(_ sequence: Int64, clientID: String) throws(PostgresError) {
        guard var known = try devices(named: [clientID])[clientID],
            known.acknowledged < sequence
        else { return }
        pending.acknowledge(sequence, device: known)
        known.acknowledged = sequence
        devices[clientID] = known
    }
}
