import MartletModel
import PostgresKit

/// Notes what a slot sends in Martlet's tables, as triggers would have: for each transaction of another
/// program the records it touched. What Martlet did itself says so, and is passed over.
///
/// Changes and how far they have been read go into one transaction, so that nothing is noted twice.
struct LogicalIntake {
    /// What names a record of a table that is read.
    private struct Source {
        let number: Int64
        /// The key's place among the columns that are sent.
        let key: Int
    }

    /// A transaction that is being received.
    private struct Received {
        let number: UInt32
        var isOwn = false
        var author: String?
        var hasChanges = false
    }

    /// Records noted with one statement.
    private static let atOnce = 1_000

    private let connection: PostgresConnection
    private var tables: [UInt32: PostgresTable]
    private var sources: [UInt32: Source] = [:]
    private var received: Received?
    private var types: [Int64] = []
    private var ids: [String] = []
    /// External transactions in the open transaction.
    private var entered: Int64 = 0
    /// The transactions among them that may still be running for readers of the tables.
    private var ending: [Int64] = []
    /// The number the next transaction of the cluster gets, at least.
    private var next: UInt64 = 0
    /// Every transaction below `number` had ended before `place`.
    private var mark: (place: UInt64, number: UInt64)?
    /// Everything that ended before it has been taken.
    private(set) var position: UInt64
    /// What the tables say of it.
    private var horizon: UInt64
    /// Somebody waits to read how far this has come.
    private(set) var isAwaited = false
    /// Whether the slot was found not to name deleted records: the table has to be compared.
    private(set) var hasMissed = false
    /// Transactions received since that was last said.
    private(set) var unsaid = 0

    /// - Parameter connection: Is this one's alone.
    init(
        on connection: PostgresConnection, position: UInt64, horizon: UInt64
    ) throws {
        self.connection = connection
        self.position = position
        self.horizon = horizon
        tables = try Self.tables(connection)
        try look()
    }

    private static func tables(
        _ connection: PostgresConnection
    ) throws -> [UInt32: PostgresTable] {
        Dictionary(
            try PostgresSchema.read(connection).tables.map { ($0.relation, $0) },
            uniquingKeysWith: { first, _ in first })
    }

    /// Whether a transaction is being received: nothing can be committed before its end.
    var isWithin: Bool { received != nil }

    /// Whether the intake waits for received transactions to end. Until then it receives nothing
    /// more, or the wait might never end.
    var isEnding: Bool { received == nil && !ending.isEmpty }

    /// Whether something was taken that a commit has yet to keep.
    var hasChanges: Bool { entered > 0 }

    /// Whether rows may be known to have been read that the tables do not say so of.
    var hasNews: Bool {
        if hasMissed { return true }
        if let mark, mark.place <= position { return true }
        return false
    }

    // MARK: - Messages

    mutating func take(_ message: ReplicationMessage) throws {
        switch message {
        case .reached(let place):
            if received == nil { position = max(position, place) }
        case .data(let bytes):
            guard let message = OutputMessage(bytes) else {
                throw PostgresError(.other, "the slot sent what cannot be read")
            }
            try take(message)
        }
    }

    private mutating func take(_ message: OutputMessage) throws {
        switch message {
        case .begin(let transaction): received = Received(number: transaction)
        case .commit(let end): try commit(end)
        case .said("martlet", _): received?.isOwn = true
        case .said("martlet.wait", _): isAwaited = true
        case .said("martlet.author", let author):
            received?.author = author.isEmpty || author.utf8.contains(0) ? nil : author
        case .relation(let relation, let identity, let columns):
            try know(relation, identity, columns)
        case .insert(let relation, let row): try note(relation, [row])
        case .update(let relation, let old, let row):
            try note(relation, [old, row].compactMap(\.self))
        case .delete(let relation, let row): try note(relation, [row])
        case .truncate(let relations): for relation in relations { try empty(relation) }
        case .said, .other: break
        }
    }

    private mutating func know(
        _ relation: UInt32, _ identity: UInt8, _ columns: [OutputMessage.Column]
    ) throws {
        if tables[relation] == nil { tables = try Self.tables(connection) }
        sources[relation] = nil
        guard let table = tables[relation] else { return }
        let keys = columns.indices.filter { columns[$0].isKey }
        // The key may have had another name then, or have one now that another column had.
        let sole = keys.count == 1 ? keys[0] : nil
        let named = columns.firstIndex { $0.name == table.key.name }
        let goesByKey = identity == UInt8(ascii: "d")
        guard let key = goesByKey ? sole ?? named : named ?? sole else {
            throw PostgresError(
                .statement,
                "rows of “\(table.type.name)” are not named by “\(table.key.name)”; restart the server"
            )
        }
        sources[relation] = Source(number: table.number, key: key)
        guard !columns[key].isKey else { return }
        try open()
        if try LogicalPublication.missDeletions(of: table.number, on: connection) {
            hasMissed = true
        }
    }

    private mutating func note(_ relation: UInt32, _ rows: [OutputMessage.Row]) throws {
        guard received?.isOwn == false, let source = sources[relation] else { return }
        var last: String?
        for row in rows {
            guard row.indices.contains(source.key), let id = row[source.key], id != last else {
                continue
            }
            last = id
            types.append(source.number)
            ids.append(id)
        }
        if ids.count >= Self.atOnce { try write() }
    }

    /// All records that the log has of a table and that are not there any more. What came back
    /// since is sent by itself.
    private mutating func empty(_ relation: UInt32) throws {
        guard let current = received, !current.isOwn else { return }
        if tables[relation] == nil { tables = try Self.tables(connection) }
        guard let table = tables[relation] else { return }
        try write()
        try open()
        _ = try connection.query(
            """
            INSERT INTO _martlet.foreign_changes (transaction, type, id) \
            SELECT $1::text::xid8, r.type, r.id FROM _martlet.records AS r \
            WHERE r.type = $2 AND NOT r.deleted AND NOT EXISTS (SELECT FROM \(table.sqlName) AS t \
            WHERE t.\(table.key.sqlName)::text COLLATE "C" = r.id) ORDER BY r.id DESC
            """, [.text(String(number(current.number))), .integer(table.number)])
        received?.hasChanges = true
    }

    // MARK: - Martlet's tables

    private mutating func write() throws(PostgresError) {
        guard let current = received, !ids.isEmpty else { return }
        try open()
        _ = try connection.query(
            """
            INSERT INTO _martlet.foreign_changes (transaction, type, id) \
            SELECT $1::text::xid8, q.type, q.id FROM unnest($2::bigint[], $3::text[]) \
            WITH ORDINALITY AS q (type, id, n) ORDER BY q.n
            """,
            [
                .text(String(number(current.number))), PendingWrites.integers(types),
                PendingWrites.texts(ids),
            ])
        received?.hasChanges = true
        types.removeAll(keepingCapacity: true)
        ids.removeAll(keepingCapacity: true)
    }

    private mutating func commit(_ end: UInt64) throws(PostgresError) {
        try write()
        if let current = received, current.hasChanges {
            _ = try connection.query(
                """
                INSERT INTO _martlet.foreign_transactions (transaction, author) \
                VALUES ($1::text::xid8, $2) ON CONFLICT DO NOTHING
                """,
                [
                    .text(String(number(current.number))),
                    current.author.map { .text($0) } ?? .null,
                ])
            entered += 1
            ending.append(Int64(bitPattern: number(current.number)))
        }
        received = nil
        unsaid += 1
        position = max(position, end)
    }

    /// A transaction's number with the rounds that such numbers have made.
    private func number(_ transaction: UInt32) -> UInt64 {
        let number = next & ~0xffff_ffff | UInt64(transaction)
        return number > next + (1 << 31) && number >> 32 > 0 ? number - (1 << 32) : number
    }

    private mutating func open() throws(PostgresError) {
        guard !connection.isInTransaction else { return }
        try connection.begin()
        try look()
    }

    /// Looks which transactions have ended, and where the write-ahead log was then.
    private mutating func look() throws(PostgresError) {
        // The snapshot is taken first: what it sees has its end before the place.
        let row = try connection.query(
            """
            SELECT pg_snapshot_xmin(pg_current_snapshot()), pg_snapshot_xmax(pg_current_snapshot()), \
            pg_current_wal_insert_lsn()::text
            """)
        next = UInt64(bitPattern: try row.integer(0, 1))
        if mark == nil, let place = PostgresConnection.position(try row.text(0, 2)) {
            mark = (place, UInt64(bitPattern: try row.integer(0, 0)))
        }
    }

    /// Waits until the tables show the rows of all transactions taken.
    ///
    /// A commit can be read from the write-ahead log before it has ended for other sessions:
    /// PostgreSQL flushes it, waits for synchronous standbys, and only then lets its rows show. A
    /// drain of an earlier note would read the old rows, and nothing would look again.
    /// - Parameter rounds: The number of looks, about two milliseconds apart.
    /// - Returns: Whether they show.
    mutating func awaitEnds(rounds: Int = 25) throws(PostgresError) -> Bool {
        for round in 0..<rounds where !ending.isEmpty {
            if round > 0 { _ = try connection.query("SELECT pg_catalog.pg_sleep(0.002)") }
            // Each statement has a snapshot of its own.
            let rows = try connection.query(
                """
                SELECT t FROM unnest($1::bigint[]) AS t \
                WHERE NOT pg_visible_in_snapshot(t::text::xid8, pg_current_snapshot())
                """, [PendingWrites.integers(ending)])
            ending = []
            for row in 0..<rows.count { ending.append(try rows.integer(row, 0)) }
        }
        return ending.isEmpty
    }

    /// Commits the notes and the place up to which the log has been read. It does nothing while a
    /// transaction is being received, or before all transactions have ended.
    mutating func keep() throws(PostgresError) {
        if let mark, mark.place <= position {
            horizon = max(horizon, mark.number)
            self.mark = nil
        }
        // What is only how far it has come may be lost with the machine: it is read again.
        let isWorth = entered > 0
        if !connection.isInTransaction { try connection.begin() }
        var statements = [
            PostgresStatement(
                """
                UPDATE _martlet.capture SET position = $1::text::pg_lsn, \
                horizon = $2::text::xid8, entered = entered + $3
                """,
                [
                    .text(PostgresConnection.place(position)), .text(String(horizon)),
                    .integer(entered),
                ])
        ]
        if isWorth {
            statements.append(
                PostgresStatement("SELECT set_config('synchronous_commit', 'on', true)"))
        }
        statements.append(PostgresStatement("COMMIT"))
        for answer in try connection.pipeline([statements])[0] { _ = try answer.get() }
        // Only transactions of somebody's are worth another mark: this one's own have no end.
        if unsaid > 0 { try look() }
        entered = 0
        unsaid = 0
        isAwaited = false
    }
}
