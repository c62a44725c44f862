import MartletModel
import MartletProtocol
import MartletServerCore
import PostgresKit

/// A connection, and the state of the data set in memory. The store discards it after a fault.
final class DataSetSession {
    let connection: PostgresConnection
    let model: PostgresModel
    let tables: [PostgresTable]
    let identity: String
    let checks: ValueChecks
    /// The database's encoding.
    let encoding: String
    /// Whether the database has each character, as far as this has been looked up.
    var storable: [Unicode.Scalar: Bool] = [:]
    /// The state of the tables when the session was opened; see `TableState`.
    let state: Int64
    /// The first error of the server for which one set was put off, until the store takes it.
    var trouble: PostgresError?
    /// Whether the open transaction has found that the database's disk has room.
    var hasFoundRoom = false
    /// Receives the rows that sets leave behind and that no device can receive.
    let unsendable: UnsendableRows
    private let external: ExternalDrain
    /// Waits for the reader of the write-ahead log if external writes are read from there; else
    /// nil.
    let logicalWait: LogicalWait?
    /// The horizon of the open transaction: writes by transactions below it are in the log or
    /// noted. Nil if triggers note all writes.
    private(set) var horizon: UInt64?
    /// Whether the open transaction must be rolled back and restarted, for example because it has
    /// seen the log without earlier external writes.
    var isOutdated = false
    /// Whether the open transaction is a restarted one.
    private(set) var isRestarted = false

    /// The head of the open transaction, or else that of the last look.
    var head: LogHead
    var floor: Revision
    /// The writes that the open transaction still has to make.
    var pending = PendingWrites()
    /// The state of the tables that `model` describes; see `PostgresSchema.version`.
    private let version: Int64
    /// The names that each transaction checks; nil if there are no policies.
    private let names: TableNames?
    /// The records of the open transaction that another program is changing.
    var contested: Set<RecordAddress> = []
    /// The types whose tables another transaction has locked, also against readers.
    var barred: Set<Int> = []
    /// Whether a lock was not available since the last commit, and whether its holder has been
    /// looked for.
    var barring = (isDue: false, isDone: false)
    /// The keys that PostgreSQL gave out and no record has yet.
    var keys: ReservedKeys
    /// The known devices. Their data here does not change, except `acknowledged`, which may be out
    /// of date.
    var devices: [String: KnownDevice] = [:]
    /// Whether the open transaction has savepoints: `martlet_0` and so on.
    var openSavepoints = false
    /// The session's settings at the beginning of the transaction; nil before the first, and after
    /// one that was rolled back.
    var settings: SessionSettings?
    /// Whether each set runs alone because something failed outside all sets in the last try of
    /// this batch.
    var isCareful = false
    /// The triggers of each table before `model` was read; see `TriggerMarks`.
    private let marks: [UInt32: Int64]
    /// The types whose tables got or changed triggers since then. Each set that writes to them
    /// captures.
    private(set) var triggered: Set<Int> = []
    /// The types to whose tables the open transaction has written without capturing.
    var uncaptured: Set<Int> = []
    /// The sets that took too long, and the tables that they wrote to.
    var slow = SlowSets()
    /// The sets that are being carried out.
    var underway: [SetWork] = []
    /// The moment when the last round trip with sets began.
    var tried = ContinuousClock.now
    /// The number of round trips, for measurements.
    private(set) var trips = 0

    private static let mostDevices = 10_000

    /// The settings that distinguish a session of the storage. Its statements find single rows by
    /// their keys, so PostgreSQL makes plans once, and never from the state of empty tables. A row that
    /// row-level security hides would look like a deleted one, so statements fail in place of that.
    static let settings = """
        SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET row_security = off
        """

    /// The milliseconds that the storage waits for a row or a table that another program has
    /// locked. All devices wait with it.
    static let lockMilliseconds = 500

    init(
        connection: PostgresConnection, schema: PostgresSchema, state: Int64,
        marks: [UInt32: Int64], names: TableNames?, unsendable: UnsendableRows
    ) throws(PostgresError) {
        self.connection = connection
        self.names = names
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
        // If the connection was lost in the middle of a commit, the server may not know it yet.
        // This statement waits for the row.
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

    /// Takes the values of the counter row.
    private func take(_ row: PostgresRows) throws(PostgresError) {
        head = LogHead(
            revision: try row.integer(0, 0), hash: LineageHash(stored: try row.binary(0, 2)))
        floor = try row.integer(0, 1)
    }

    /// Runs statements in one round trip.
    /// - Returns: Their answers. Those after a failure in a segment are failures, too.
    func run(
        _ segments: [[PostgresStatement]]
    ) throws(PostgresError) -> [[PostgresConnection.Answer]] {
        trips += 1
        return try connection.pipeline(segments)
    }

    /// Runs statements in one round trip. None of them may fail.
    func run(_ statements: [PostgresStatement]) throws(PostgresError) -> [PostgresRows] {
        guard !statements.isEmpty else { return [] }
        let answers = try run([statements])
        var rows: [PostgresRows] = []
        rows.reserveCapacity(statements.count)
        for answer in answers[0] { rows.append(try answer.get()) }
        return rows
    }

    /// Returns the pending writes, which must precede a read that depends on them.
    func takePending() -> [PostgresStatement] {
        let statements = pending.statements(model.forms.map(\.table), floor: floor)
        pending = PendingWrites()
        return statements
    }
}

@available(*, unavailable)
extension DataSetSession: Sendable {}

// MARK: - Transactions

extension DataSetSession {
    private static let counter = """
        SELECT revision, floor, hash, tables FROM _martlet.dataset WHERE number = 1 FOR UPDATE
        """

    /// Begins a transaction and locks the counter row. From then on this is the only writer.
    /// - Returns: Whether there are external writes that are not in the log yet.
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
                set_config('lock_timeout', '\(Self.lockMilliseconds)', true), \
                EXISTS (SELECT FROM unnest($1::bigint[]) AS t WHERE pg_catalog.row_security_active(t::oid))
                """, [PendingWrites.integers(tables.map { Int64($0.relation) })]),
        ]
        if !model.deferring.isEmpty {
            statements.append(PostgresStatement("SET CONSTRAINTS ALL DEFERRED"))
        }
        let settingsIndex = settings == nil ? statements.count : nil
        if settingsIndex != nil { statements.append(SessionSettings.reading) }
        if logicalWait != nil {
            // The reader of the write-ahead log does not treat later writes of this transaction as
            // external.
            statements.append(
                PostgresStatement(
                    "SELECT horizon, \(LogicalState.ownMark)::text FROM _martlet.capture"))
        }
        let answers = try run(statements)
        guard answers[1].count == 1 else {
            throw PostgresError(.other, "_martlet.dataset is empty")
        }
        try take(answers[1])
        if let settingsIndex { settings = try SessionSettings(answers[settingsIndex]) }
        if !barred.isEmpty { try lookForLocks() }
        // If another process knows new columns and tables, this one would leave them out of
        // entries, and no device would ever receive them.
        let found = try answers[1].integer(0, 3)
        // Nor does it know which views another process has marked as outdated.
        if let names, names.version != found { throw TableNames.fault }
        guard found == version else {
            throw PostgresError(
                .statement, "tables or columns have come or gone", sqlState: "42P01")
        }
        guard try !answers[2].boolean(0, 3) else {
            throw PostgresError(
                .forbidden,
                "row-level security hides rows of the data set's tables from the server's role",
                sqlState: "42501")
        }
        if logicalWait != nil, let row = answers.last, row.count == 1 {
            horizon = UInt64(bitPattern: try row.integer(0, 0))
        }
        return try answers[2].boolean(0, 0)
    }

    /// Rolls the open transaction back, so that another can begin.
    func restart() throws(PostgresError) {
        try connection.rollback()
        isOutdated = false
        isRestarted = true
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

    /// Returns whether rows may change apart from statements that write to a type's table.
    func changesBehind(_ type: Int) -> Bool {
        tables[type].changesBehind || triggered.contains(type)
    }

    /// Ends the connections.
    func close() {
        logicalWait?.close()
        connection.close()
    }

    /// Adds external writes to the log.
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
            // This way no part of a set runs after the checks.
            statements.append(PostgresStatement("SET CONSTRAINTS ALL IMMEDIATE"))
            if !uncaptured.isEmpty {
                statements.append(
                    TriggerMarks.check(
                        uncaptured.sorted().map { (tables[$0].relation, mark(of: $0)) }))
            }
            statements.append(settings.check)
        }
        let check = names == nil ? nil : statements.count
        if let names { statements.append(names.check) }
        statements.append(PostgresStatement("COMMIT"))
        let answers = try TableNames.rows(try run([statements])[0], checkedAt: check)
        guard answers.last?.tag != "ROLLBACK" else {
            throw PostgresError(.rolledBack, "the transaction had failed before its commit")
        }
        openSavepoints = false
        isRestarted = false
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

extension DataSetSession {
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
