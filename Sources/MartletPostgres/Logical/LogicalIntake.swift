import MartletModel
import PostgresKit

/// Notes a slot's messages in Martlet's tables, as triggers would: for each external transaction,
/// the records that it touched. Martlet's own transactions are marked, and skipped.
///
/// Changes, and the position up to which the log has been read, are committed in one transaction,
/// so that nothing is noted twice.
struct LogicalIntake {
    /// The columns that identify a record of a table.
    private struct Source {
        let number: Int64
        /// The key's index among the columns that the slot sends.
        let key: Int
    }

    /// A transaction that is being received.
    private struct Received {
        let number: UInt32
        var isOwn = false
        var author: String?
        var hasChanges = false
    }

    /// The most records noted with one statement.
    private static let atOnce = 1_000

    private let connection: PostgresConnection
    private var tables: [UInt32: PostgresTable]
    private var sources: [UInt32: Source] = [:]
    private var received: Received?
    private var types: [Int64] = []
    private var ids: [String] = []
    /// The external transactions noted in the open transaction.
    private var entered: Int64 = 0
    /// Those of them that may still be running for readers of the tables.
    private var ending: [Int64] = []
    /// A lower bound of the number that the cluster's next transaction gets.
    private var next: UInt64 = 0
    /// A position of the write-ahead log, and a number: every transaction below `number` had ended
    /// before `position`.
    private var mark: (position: UInt64, number: UInt64)?
    /// The position before which everything that ended has been taken.
    private(set) var position: UInt64
    /// The horizon in Martlet's tables.
    private var horizon: UInt64
    /// Whether another session waits to read how far reading has come.
    private(set) var isAwaited = false
    /// Whether the slot was found not to name deleted records, so that the table must be compared.
    private(set) var hasMissed = false
    /// The transactions received since the position was last committed.
    private(set) var unsaid = 0

    /// Makes an intake that continues at a position.
    /// - Parameter connection: A connection that only this intake uses.
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

    /// Whether a transaction is being received. Nothing can be committed before its end.
    var isWithin: Bool { received != nil }

    /// Whether the intake waits for received transactions to end. Until then it receives nothing
    /// more, or the wait might never end.
    var isEnding: Bool { received == nil && !ending.isEmpty }

    /// Whether there are notes that are not committed yet.
    var hasChanges: Bool { entered > 0 }

    /// Whether more rows may be known to have been read than the tables say.
    var hasNews: Bool {
        if hasMissed { return true }
        if let mark, mark.position <= position { return true }
        return false
    }

    // MARK: - Messages

    mutating func take(_ message: ReplicationMessage) throws {
        switch message {
        case .reached(let end):
            if received == nil { position = max(position, end) }
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
        let goesByKey = identity == UInt8(ascii: "d")
        // Without a replica identity, the key is known by its present name.
        if tables[relation] == nil || !goesByKey { tables = try Self.tables(connection) }
        sources[relation] = nil
        guard let table = tables[relation] else { return }
        let keys = columns.indices.filter { columns[$0].isKey }
        // The key may have had another name at that time, or may have a name now that another
        // column had.
        let sole = keys.count == 1 ? keys[0] : nil
        let named = columns.firstIndex { $0.name == table.key.name }
        if !goesByKey, try !hasPresentColumns(table, columns.map(\.name)) {
            // Nobody knows which column was the key, so the rows are compared.
            try open()
            _ = try LogicalPublication.missDeletions(of: table.number, on: connection)
            hasMissed = true
            return
        }
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

    /// Returns whether columns that are sent are the first ones of a table as it is now.
    private func hasPresentColumns(
        _ table: PostgresTable, _ names: [String]
    ) throws(PostgresError) -> Bool {
        let rows = try connection.query(
            """
            SELECT attname::text FROM pg_catalog.pg_attribute WHERE attrelid = $1::oid \
            AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum
            """, [.integer(Int64(table.relation))])
        guard names.count <= rows.count else { return false }
        for (row, name) in names.enumerated() where try rows.text(row, 0) != name { return false }
        return true
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

    /// Notes all records of the log whose rows no longer exist in a table. Rows that returned since
    /// have their own messages.
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

    /// Returns a transaction's number including the wrap-arounds of such numbers.
    private func number(_ transaction: UInt32) -> UInt64 {
        let number = next & ~0xffff_ffff | UInt64(transaction)
        return number > next + (1 << 31) && number >> 32 > 0 ? number - (1 << 32) : number
    }

    private mutating func open() throws(PostgresError) {
        guard !connection.isInTransaction else { return }
        try connection.begin()
        try look()
    }

    /// Reads which transactions have ended, and the position of the write-ahead log at that time.
    private mutating func look() throws(PostgresError) {
        // The statement takes its snapshot first, so everything that it sees ended before the
        // position.
        let row = try connection.query(
            """
            SELECT pg_snapshot_xmin(pg_current_snapshot()), pg_snapshot_xmax(pg_current_snapshot()), \
            pg_current_wal_insert_lsn()::text
            """)
        next = UInt64(bitPattern: try row.integer(0, 1))
        if mark == nil, let end = PostgresConnection.position(try row.text(0, 2)) {
            mark = (end, UInt64(bitPattern: try row.integer(0, 0)))
        }
    }

    /// Waits until the tables show the rows of all received transactions.
    ///
    /// A commit can be read from the write-ahead log before it has ended for other sessions.
    /// PostgreSQL flushes it, waits for synchronous standbys, and only then shows its rows. A drain
    /// of an earlier note would read the old rows, and nothing would read them again.
    /// - Parameter rounds: The number of looks, about two milliseconds apart.
    /// - Returns: Whether the tables show them.
    mutating func awaitEnds(rounds: Int = 25) throws(PostgresError) -> Bool {
        for round in 0..<rounds where !ending.isEmpty {
            if round > 0 { _ = try connection.query("SELECT pg_catalog.pg_sleep(0.002)") }
            // Each statement has its own snapshot.
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

    /// Commits the notes, and the position up to which the log has been read. The caller must not
    /// call it while a transaction is being received, or before all transactions have ended.
    mutating func keep() throws(PostgresError) {
        if let mark, mark.position <= position {
            horizon = max(horizon, mark.number)
            self.mark = nil
        }
        // A mere position may be lost with the machine, because the log can be read again.
        let isWorth = entered > 0
        if !connection.isInTransaction { try connection.begin() }
        var statements = [
            PostgresStatement(
                """
                UPDATE _martlet.capture SET position = $1::text::pg_lsn, \
                horizon = $2::text::xid8, entered = entered + $3
                """,
                [
                    .text(PostgresConnection.lsn(position)), .text(String(horizon)),
                    .integer(entered),
                ])
        ]
        if isWorth {
            statements.append(
                PostgresStatement("SELECT set_config('synchronous_commit', 'on', true)"))
        }
        statements.append(PostgresStatement("COMMIT"))
        for answer in try connection.pipeline([statements])[0] { _ = try answer.get() }
        // Only received transactions make a new mark useful. This intake's own transactions would
        // make marks without end.
        if unsaid > 0 { try look() }
        entered = 0
        unsaid = 0
        isAwaited = false
    }
}
