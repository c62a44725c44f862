import MartletModel
import PostgresKit

/// Finds problems of replication slots: of the data set's own slot, and of others that keep the
/// write-ahead log.
struct SlotFindings {
    /// The bytes that an unread slot must keep to be worth a finding.
    private static let muchKept: Int64 = 1 << 30
    /// The bytes that the data set's own slot must keep to be worth a finding although it is read.
    private static let muchBehind: Int64 = 1 << 28

    private let connection: PostgresConnection

    init(_ connection: PostgresConnection) {
        self.connection = connection
    }

    /// A slot as the server lists it.
    private struct Slot {
        let name: String
        let isActive: Bool
        let isLost: Bool
        let kept: Int64
        let isHere: Bool
    }

    func all() throws -> [PostgresDoctor.Finding] {
        let state = try LogicalState.read(connection)
        let slots = try read()
        var found: [PostgresDoctor.Finding] = []
        if let state { found += try own(state, slots.first { $0.name == state.slot && $0.isHere }) }
        for slot in slots where slot.name != state?.slot || !slot.isHere { found += other(slot) }
        return found
    }

    private func read() throws -> [Slot] {
        let rows = try connection.query(
            """
            SELECT slot_name::text, active, coalesce(wal_status = 'lost', false), \
            coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::bigint, \
            coalesce(database = current_database(), false) \
            FROM pg_catalog.pg_replication_slots WHERE NOT pg_is_in_recovery() ORDER BY 1
            """)
        return try (0..<rows.count).map { row in
            Slot(
                name: try rows.text(row, 0), isActive: try rows.boolean(row, 1),
                isLost: try rows.boolean(row, 2), kept: try rows.integer(row, 3),
                isHere: try rows.boolean(row, 4))
        }
    }

    private func finding(
        _ isError: Bool, _ what: String, _ why: String, _ fix: String
    ) -> PostgresDoctor.Finding {
        PostgresDoctor.Finding(isError: isError, check: "slots", what: what, why: why, fix: fix)
    }

    private func own(_ state: LogicalState, _ slot: Slot?) throws -> [PostgresDoctor.Finding] {
        var found: [PostgresDoctor.Finding] = []
        let level = try connection.query("SELECT current_setting('wal_level')").text(0, 0)
        if level != "logical" {
            found.append(
                finding(
                    true,
                    "wal_level is “\(level)”, and other programs' writes are read from there.",
                    "What they write reaches no device.",
                    "ALTER SYSTEM SET wal_level = logical; and start PostgreSQL again."))
        }
        found += try publication(LogicalPublication(state.publication, on: connection))
        guard let slot, !slot.isLost else {
            return found + [
                finding(
                    true,
                    "The replication slot “\(state.slot)” is \(slot == nil ? "gone" : "lost").",
                    "What other programs wrote since is in no entry of the log.",
                    """
                    Start a server: it recreates the slot and compares the tables with the log. Raise \
                    max_slot_wal_keep_size if servers are to be down for longer.
                    """)
            ]
        }
        if !slot.isActive {
            found.append(
                finding(
                    slot.kept > Self.muchKept,
                    "Nobody reads the replication slot “\(slot.name)”; it keeps \(slot.kept >> 20) MiB.",
                    "What other programs write reaches no device, and the disk fills.",
                    "Start a server, or: martlet postgres adopt --cdc triggers."))
        } else if slot.kept > Self.muchBehind {
            found.append(
                finding(
                    false,
                    "The replication slot “\(slot.name)” keeps \(slot.kept >> 20) MiB.",
                    "A transaction is open for long, or the server cannot keep up.",
                    "Look for old transactions in pg_stat_activity."))
        }
        return found
    }

    private static let mending = """
        Start a server: it mends that, and compares the tables with the log. If its role may not, run as the \
        tables' owner: martlet postgres adopt --cdc logical.
        """

    private func publication(
        _ publication: LogicalPublication
    ) throws -> [PostgresDoctor.Finding] {
        let exists = try publication.exists()
        let gone = finding(
            true, "The publication “\(publication.name)” is gone.",
            "What other programs write reaches no device.", Self.mending)
        // The tables of an older release lack the needed columns. Other findings report problems of
        // the tables themselves.
        guard try MartletTables.dataSet(on: connection)?.format == MartletTables.format,
            let tables = try? PostgresSchema.read(connection).tables
        else { return exists ? [] : [gone] }
        let lines = try publication.lines(of: tables)
        guard exists else { return [gone] + lines.compactMap(identity) }
        return lines.flatMap { line($0, publication) }
    }

    private func line(
        _ line: LogicalPublication.Line, _ publication: LogicalPublication
    ) -> [PostgresDoctor.Finding] {
        let name = "“\(line.table.type.name)”"
        var found = [identity(line)].compactMap(\.self)
        if line.member == nil {
            found.append(
                finding(
                    true, "The publication “\(publication.name)” does not send all of \(name).",
                    "What other programs write to it reaches no device.", Self.mending))
        }
        guard found.isEmpty, line.isOwed else { return found }
        return [
            finding(
                false, "Writes of other programs to \(name) may have been missed.",
                "Devices would not have them.",
                "Start a server: it compares the table with the log once open transactions have ended."
            )
        ]
    }

    /// Returns the finding for a table whose deleted rows the write-ahead log would not name; nil if
    /// it names them.
    private func identity(_ line: LogicalPublication.Line) -> PostgresDoctor.Finding? {
        line.problem.map {
            finding(
                true, "The replica identity of the table “\(line.table.type.name)” lacks its key.",
                "Deletions and changes of keys by other programs reach no device.",
                "\($0.remedy); a server then compares the table with the log.")
        }
    }

    private func other(_ slot: Slot) -> [PostgresDoctor.Finding] {
        if slot.isHere, slot.name.hasPrefix("martlet_") {
            return [
                finding(
                    slot.kept > Self.muchKept,
                    "The replication slot “\(slot.name)” is no data set's any more.",
                    "It keeps the write-ahead log, \(slot.kept >> 20) MiB by now.",
                    "SELECT pg_drop_replication_slot('\(slot.name)');")
            ]
        }
        guard slot.isLost || (!slot.isActive && slot.kept > Self.muchKept) else { return [] }
        return [
            finding(
                slot.isLost,
                slot.isLost
                    ? "The replication slot “\(slot.name)” is lost."
                    : """
                    Nobody reads the replication slot “\(slot.name)”; it keeps \(slot.kept >> 20) MiB.
                    """,
                "A slot that is not read keeps the log of writes until the disk is full.",
                "Start its reader, or: SELECT pg_drop_replication_slot('\(slot.name)');")
        ]
    }
}
