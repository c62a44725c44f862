import MartletModel
import PostgresKit

/// Repairs the reading of external writes: recreates the publication and the slot if they are gone,
/// adds tables to the publication again, and makes the log take the writes that were missed
/// meanwhile.
struct LogicalMending {
    /// The repairs, and the work that is left for the operator.
    struct Outcome {
        /// Sentences about the repairs.
        var notes: [String] = []
        /// Sentences about tables whose writes are not all read, and what to do.
        var faults: [String] = []
        /// Whether tables must still be compared, because transactions are open.
        var isWaiting = false
    }

    private let connection: PostgresConnection
    private let slot: LogicalSlot

    /// Makes a repair on a connection.
    /// - Parameter connection: A connection without a time limit for statements, because tables may
    ///   be large.
    init(on connection: PostgresConnection) {
        self.connection = connection
        slot = LogicalSlot(on: connection)
    }

    /// Returns whether the publication or the slot needs repair.
    func isNeeded(_ state: LogicalState, _ tables: [PostgresTable]) throws(PostgresError) -> Bool {
        let publication = LogicalPublication(state.publication, on: connection)
        let current = try slot.state(of: state.slot)
        guard let current, !current.isLost, try publication.exists() else { return true }
        return try publication.lines(of: tables).contains { $0.member == nil }
    }

    /// Repairs everything. The caller must hold the reader's lock.
    /// - Throws: `PostgresError` or `AdoptionError`. The next attempt continues from there.
    func run() throws -> Outcome {
        guard let state = try LogicalState.read(connection) else { return Outcome() }
        let schema = try PostgresSchema.read(connection)
        let publication = LogicalPublication(state.publication, on: connection)
        var outcome = Outcome()
        outcome.notes = try remake(state, publication, schema.tables)
        let isWhole = state.position == nil || !outcome.notes.isEmpty
        let lines = try complete(publication, schema.tables, &outcome)
        for line in lines where line.problem != nil {
            _ = try LogicalPublication.missDeletions(of: line.table.number, on: connection)
        }
        outcome.faults = lines.compactMap { Self.fault($0) }
        let owed = lines.filter { $0.isOwed && $0.isCaptured }
        guard isWhole || !owed.isEmpty else { return outcome }
        let start = try slot.unreadPosition()
        let next: UInt64
        do throws(PostgresError) {
            next = try awaitEarlier(rounds: isWhole ? 1_000 : 100)
        } catch {
            guard !isWhole, error.kind == .busy else { throw error }
            outcome.isWaiting = true
            return outcome
        }
        let comparison = LogicalComparison(
            on: connection, schema, owed: owed, since: isWhole ? state.horizon : nil)
        let found = try comparison.find()
        let differences = try connection.transaction {
            let differences = try comparison.enter(found)
            try publication.acknowledge(owed.map(\.table))
            _ = try connection.query(
                """
                UPDATE _martlet.capture SET entered = entered + 1, \
                position = coalesce($1::text::pg_lsn, position), horizon = $2::text::xid8
                """,
                [
                    isWhole ? .text(start) : .null,
                    .text(String(isWhole ? max(next, state.horizon) : state.horizon)),
                ])
            return differences
        }
        outcome.notes.append(
            """
            the tables were compared with the log: \(differences.changed) records changed or new, \
            \(differences.deleted) gone
            """)
        return outcome
    }

    private static func fault(_ line: LogicalPublication.Line) -> String? {
        if let problem = line.problem { return "\(problem.what); \(problem.remedy)" }
        guard line.member == nil else { return nil }
        return """
            the publication does not send all that is written to “\(line.table.type.name)”, and this role may \
            not put it back: run “martlet postgres adopt --cdc logical” as the tables' owner
            """
    }

    /// Recreates the publication and the slot if one of the two is gone. When its publication was
    /// dropped, PostgreSQL cannot read a slot any further, even if another publication of that name
    /// is made.
    /// - Returns: Sentences about the repairs. If there are any, all tables must be compared.
    private func remake(
        _ state: LogicalState, _ publication: LogicalPublication, _ tables: [PostgresTable]
    ) throws -> [String] {
        let current = try slot.state(of: state.slot)
        let isPublished = try publication.exists()
        guard !isPublished || (current?.isLost ?? true) else { return [] }
        var notes: [String] = []
        try connection.transaction {
            // This is first, so that any process that continues from here knows it.
            _ = try connection.query("UPDATE _martlet.capture SET position = NULL")
            guard !isPublished else { return }
            let known = try publication.lines(of: tables).filter(\.isKnown)
            try publication.make(tables)
            try publication.acknowledge(known.map(\.table))
            notes.append("the publication “\(state.publication)” was gone; it was recreated")
        }
        try slot.drop(state.slot)
        try slot.recreate(state.slot)
        let what = current.map { $0.isLost ? "lost" : "of no use without it" } ?? "gone"
        notes.append("the replication slot “\(state.slot)” was \(what); it was recreated")
        return notes
    }

    /// Adds tables to the publication again.
    /// - Returns: The lines of all tables afterwards.
    private func complete(
        _ publication: LogicalPublication, _ tables: [PostgresTable], _ outcome: inout Outcome
    ) throws(PostgresError) -> [LogicalPublication.Line] {
        let lines = try publication.lines(of: tables)
        let missing = lines.filter { $0.member == nil }
        guard !missing.isEmpty else { return lines }
        do throws(PostgresError) {
            try publication.complete(tables)
        } catch {
            guard error.kind == .forbidden else { throw error }
            return lines
        }
        outcome.notes.append(
            "the publication did not send all of \(Self.names(missing)); it does again")
        return try publication.lines(of: tables)
    }

    private static func names(_ lines: [LogicalPublication.Line]) -> String {
        lines.map { "“\($0.table.type.name)”" }.joined(separator: ", ")
    }

    /// Waits until the tables show every transaction that may have been committed before the slot
    /// begins, or before a table was added again. The slot sends none of these, so the comparison
    /// must see all of them.
    /// - Returns: The number below which all transactions have ended.
    /// - Throws: `PostgresError`; `.busy` if other transactions did not end in time.
    private func awaitEarlier(rounds: Int) throws(PostgresError) -> UInt64 {
        let next = try connection.query("SELECT pg_snapshot_xmax(pg_current_snapshot())")
            .integer(0, 0)
        for _ in 0..<rounds {
            let rows = try connection.query(
                "SELECT pg_snapshot_xmin(pg_current_snapshot()) >= $1::text::xid8",
                [.text(String(next))])
            if try rows.boolean(0, 0) { return UInt64(bitPattern: next) }
            _ = try connection.query("SELECT pg_catalog.pg_sleep(0.01)")
        }
        throw PostgresError(
            .busy,
            """
            tables can be compared with the log once transactions that are open now have ended; see \
            pg_stat_activity, the oldest xact_start
            """)
    }
}
