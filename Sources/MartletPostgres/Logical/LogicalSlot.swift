import PostgresKit

/// The replication slot and the publication of a data set.
struct LogicalSlot {
    /// The server's description of a slot.
    struct State: Hashable {
        let isActive: Bool
        /// Whether the log that the slot has yet to send is gone. The slot is then useless.
        let isLost: Bool
    }

    private let connection: PostgresConnection

    init(on connection: PostgresConnection) {
        self.connection = connection
    }

    /// Returns the state of a slot; nil if there is none, or if it belongs to another database.
    func state(of name: String) throws(PostgresError) -> State? {
        let rows = try connection.query(
            """
            SELECT active, coalesce(wal_status = 'lost', false) \
            FROM pg_catalog.pg_replication_slots WHERE slot_name = $1 \
            AND database = pg_catalog.current_database() AND plugin = 'pgoutput'
            """, [.text(name)])
        guard rows.count == 1 else { return nil }
        return State(isActive: try rows.boolean(0, 0), isLost: try rows.boolean(0, 1))
    }

    /// Makes the slot, outside any transaction. It waits for transactions that are open now,
    /// anywhere in the cluster, as long as the connection waits for locks.
    /// - Returns: The position from which the slot has everything.
    /// - Throws: `PostgresError`; `.busy` if other transactions did not end in time.
    func make(_ name: String) throws(PostgresError) -> UInt64 {
        let rows: PostgresRows
        do throws(PostgresError) {
            rows = try connection.query(
                "SELECT lsn::text FROM pg_catalog.pg_create_logical_replication_slot($1, 'pgoutput')",
                [.text(name)])
        } catch {
            guard error.kind == .busy else { throw error }
            throw PostgresError(
                .busy,
                """
                a replication slot can be made once transactions that are open now have ended; see \
                pg_stat_activity, the oldest xact_start
                """, sqlState: error.sqlState)
        }
        guard let start = PostgresConnection.position(try rows.text(0, 0)) else {
            throw PostgresError(.other, "a slot was made of which nobody says where it begins")
        }
        return start
    }

    /// Drops the slot, outside any transaction; does nothing if there is none. It waits a moment
    /// for a session that has just stopped reading the slot.
    /// - Parameter endsReader: Whether to end the session that reads the slot. A server may begin
    ///   to read it again at once, so each try does so.
    /// - Throws: `AdoptionError` if the role may not end the reader; `PostgresError`.
    func drop(_ name: String, endsReader: Bool = false) throws {
        for attempt in 0..<100 {
            guard try state(of: name) != nil else { return }
            if endsReader { try endReader(name) }
            do {
                _ = try connection.query(
                    "SELECT pg_catalog.pg_drop_replication_slot($1)", [.text(name)])
                return
            } catch {
                // The slot disappeared with the session that was making it.
                if error.sqlState == "42704" { return }
                guard error.sqlState == "55006", attempt < 99 else { throw error }
            }
            _ = try connection.query("SELECT pg_catalog.pg_sleep(0.05)")
        }
    }

    private func endReader(_ name: String) throws {
        do throws(PostgresError) {
            _ = try connection.query(
                """
                SELECT pg_catalog.pg_terminate_backend(active_pid) \
                FROM pg_catalog.pg_replication_slots WHERE slot_name = $1 AND active_pid IS NOT NULL
                """, [.text(name)])
        } catch {
            guard error.kind == .forbidden else { throw error }
            throw AdoptionError(
                "another role reads the replication slot “\(name)”", "end that, and try again")
        }
    }

    /// Returns the slots of this database whose names have Martlet's form.
    func named() throws(PostgresError) -> [String] {
        let rows = try connection.query(
            """
            SELECT slot_name::text FROM pg_catalog.pg_replication_slots \
            WHERE slot_name LIKE 'martlet\\_%' AND plugin = 'pgoutput' \
            AND database = pg_catalog.current_database() ORDER BY 1
            """)
        var names: [String] = []
        for row in 0..<rows.count { names.append(try rows.text(row, 0)) }
        return names
    }

    /// Makes the slot. It takes another name if a copy of the data set in another database of the
    /// server has the name.
    func recreate(_ name: String) throws {
        let taken = try connection.query(
            """
            SELECT EXISTS (SELECT FROM pg_catalog.pg_replication_slots WHERE slot_name = $1), \
            (SELECT oid::text FROM pg_catalog.pg_database WHERE datname = current_database())
            """, [.text(name)])
        guard try taken.boolean(0, 0) else {
            _ = try make(name)
            return
        }
        let other = "\(name.prefix(48))_\(try taken.text(0, 1))"
        try drop(other)
        _ = try make(other)
        _ = try connection.query("UPDATE _martlet.capture SET slot = $1", [.text(other)])
    }

    /// Returns the position from which the data set's slot has everything that is still unread.
    func unreadPosition() throws(PostgresError) -> String {
        let rows = try connection.query(
            """
            SELECT confirmed_flush_lsn::text FROM pg_catalog.pg_replication_slots \
            WHERE slot_name = (SELECT slot FROM _martlet.capture)
            """)
        return try rows.text(0, 0)
    }
}
