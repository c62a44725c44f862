import MartletModel
package import MartletServerCore
package import PostgresKit

/// Looks for writes by other processes and programs to a data set, on a separate connection, which
/// is made again after an error. It is confined to its holder, and blocks.
package final class PostgresWatch {
    /// Figures for operators, which are not read for every change.
    package struct External: Hashable, Sendable {
        /// The external changes that are in no entry of the log yet. At most `mostCounted` are
        /// counted.
        package var waiting: Int
        /// The seconds for which the oldest transaction that has written anything has been open, in
        /// any database of the cluster; 0 if there is none.
        package var oldestWriterSeconds: Double
        /// The slot from which external writes are read; nil if triggers note them.
        package var slot: Slot?
    }

    /// The state of reading the write-ahead log.
    package struct Slot: Hashable, Sendable {
        /// Whether a process reads the slot.
        package var isActive: Bool
        /// Whether the slot is gone, or the part of the log that it has yet to send.
        package var isLost: Bool
        /// The bytes of the write-ahead log that are kept for the slot.
        package var retainedBytes: Int64
        /// The bytes of the write-ahead log that were written and are not read yet.
        package var lagBytes: Int64
    }

    /// The most changes to count.
    package static let mostCounted = 100_000

    private let address: PostgresAddress
    /// The name of the watch's session. It has a sum of the policies, by which servers see each other's.
    private let name: String
    private var connection: PostgresConnection?
    /// The tables' state as of a recent look, and the number that servers raise with it.
    private var tables: (state: Int64, version: Int64)?
    private var looks = 0
    /// The types whose tables another transaction has locked completely, as of a recent look.
    private var locked: [String] = []
    /// Whether another server had other policies, as of a recent look.
    private var hasOtherPolicies = false

    private static let name = "martlet watch"

    /// The interval, in looks, at which the tables and locks on them are read. That takes longer
    /// than everything else.
    private static let looksPerState = 16

    /// Makes a watch, which does not connect yet.
    /// - Parameter policies: The text of the server's policies; nil if it has none.
    package init(_ address: PostgresAddress, policies: String? = nil) {
        self.address = address
        let sum = policies.map { LineageHash(origin: $0).text } ?? "none"
        name = "\(Self.name) \(sum)"
    }

    /// Looks at the data set with one small query. Every sixteenth look, and every look after a
    /// change of tables, also reads the tables' state and locks.
    /// - Throws: `StorageFault` if the database does not answer.
    package func look() throws(StorageFault) -> StorageLook {
        try reading { (connection) throws(PostgresError) in
            let row = try connection.query(
                """
                SELECT revision, floor, hash, \(ExternalDrain.isPending), tables \
                FROM _martlet.dataset WHERE number = 1
                """)
            guard row.count == 1 else {
                throw PostgresError(.other, "_martlet.dataset is empty")
            }
            let tables = try state(version: try row.integer(0, 4), connection)
            return StorageLook(
                head: LogHead(
                    revision: try row.integer(0, 0),
                    hash: LineageHash(stored: try row.binary(0, 2))),
                floor: try row.integer(0, 1), hasExternalWrites: try row.boolean(0, 3),
                tables: tables, locked: locked, hasOtherPolicies: hasOtherPolicies)
        }
    }

    private func state(
        version: Int64, _ connection: PostgresConnection
    ) throws(PostgresError) -> Int64 {
        looks += 1
        if let tables, tables.version == version, !looks.isMultiple(of: Self.looksPerState) {
            return tables.state
        }
        let state = try TableState.read(connection)
        tables = (state, version)
        locked = try TableLocks.read(connection)
        hasOtherPolicies = try connection.query(
            """
            SELECT EXISTS (SELECT FROM pg_catalog.pg_stat_activity \
            WHERE datname = pg_catalog.current_database() AND application_name <> $1 \
            AND pg_catalog.starts_with(application_name, $2))
            """, [.text(name), .text(Self.name + " ")]
        ).boolean(0, 0)
        return state
    }

    /// Reads the figures for operators.
    /// - Throws: `StorageFault` if the database does not answer.
    package func external() throws(StorageFault) -> External {
        try reading { (connection) throws(PostgresError) in
            let row = try connection.query(
                """
                SELECT (SELECT count(*) FROM (SELECT FROM _martlet.foreign_changes \
                LIMIT \(Self.mostCounted)) AS f), \
                COALESCE((SELECT EXTRACT(EPOCH FROM max(clock_timestamp() - xact_start)) \
                FROM pg_catalog.pg_stat_activity WHERE backend_xid IS NOT NULL), 0)::float8
                """)
            guard case .double(let seconds) = try row.value(0, 1) else {
                throw PostgresError(.other, "the age of a transaction is no number")
            }
            return External(
                waiting: Int(try row.integer(0, 0)), oldestWriterSeconds: max(0, seconds),
                slot: try Self.slot(connection))
        }
    }

    /// Returns the slot's state; nil if triggers note external writes.
    static func slot(_ connection: PostgresConnection) throws(PostgresError) -> Slot? {
        guard let state = try LogicalState.read(connection) else { return nil }
        let rows = try connection.query(
            """
            SELECT active, coalesce(wal_status = 'lost', false), \
            coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn), 0)::bigint, \
            coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn), 0)::bigint \
            FROM pg_catalog.pg_replication_slots WHERE slot_name = $1
            """, [.text(state.slot)])
        guard rows.count == 1 else {
            return Slot(isActive: false, isLost: true, retainedBytes: 0, lagBytes: 0)
        }
        return Slot(
            isActive: try rows.boolean(0, 0), isLost: try rows.boolean(0, 1),
            retainedBytes: max(0, try rows.integer(0, 2)),
            lagBytes: max(0, try rows.integer(0, 3)))
    }

    private func reading<Answer>(
        _ body: (PostgresConnection) throws(PostgresError) -> Answer
    ) throws(StorageFault) -> Answer {
        do throws(PostgresError) {
            if let connection, !connection.isUsable() { self.connection = nil }
            let open: PostgresConnection
            if let connection {
                open = connection
            } else {
                var options = ServedDatabase.options(name: name, readOnly: true)
                options.statement = .seconds(5)
                options.answer = .seconds(10)
                open = try PostgresConnection(address, options)
                connection = open
            }
            return try body(open)
        } catch {
            connection?.close()
            connection = nil
            throw StorageFault(error)
        }
    }
}

@available(*, unavailable)
extension PostgresWatch: Sendable {}
