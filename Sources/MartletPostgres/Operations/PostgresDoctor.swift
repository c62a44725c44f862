package import MartletModel
package import MartletRules
package import PostgresKit

/// Finds problems of a database with a data set. It changes nothing, and servers may run. Blocks.
package struct PostgresDoctor {
    /// A problem: what is wrong, why it matters, and how to fix it.
    package struct Finding: Hashable, Sendable {
        /// Whether data or the service are at risk now.
        package let isError: Bool
        /// A fixed word for programs.
        package let check: String
        package let what: String
        package let why: String
        package let fix: String
    }

    let connection: PostgresConnection
    /// Milliseconds since 1970.
    private let now: Int64
    /// Returns the policies of the servers' rules file; nil if it has none. It throws if the file does not
    /// fit the types. Nil if no file was given.
    let policies: ((Schema) throws -> RulesProgram?)?

    package init(
        on connection: PostgresConnection, now: Int64,
        policies: ((Schema) throws -> RulesProgram?)? = nil
    ) {
        self.connection = connection
        self.now = now
        self.policies = policies
    }

    /// Returns the problems; none if there are none.
    /// - Throws: `PostgresError` if a query fails; `AdoptionError` if the schema “_martlet” is not
    ///   Martlet's.
    package func findings() throws -> [Finding] {
        var found = try version() + settings() + clock()
        guard let dataSet = try MartletTables.dataSet(on: connection) else {
            return try found + SlotFindings(connection).all() + [
                error(
                    "dataset", "The database has no data set.", "There is nothing to serve.",
                    "martlet postgres init, or martlet postgres adopt")
            ]
        }
        if dataSet.format > MartletTables.format {
            return found + [
                error(
                    "format", "Martlet's tables were written by a newer version.",
                    "This version does not know format \(dataSet.format).", "Use that version.")
            ]
        }
        if dataSet.format < MartletTables.format {
            found.append(
                warning(
                    "format", "Martlet's tables are an older release's.",
                    "This release needs format \(MartletTables.format).",
                    "Nothing: the next server that starts brings them there."))
        }
        found +=
            try rooms() + activity() + SlotFindings(connection).all() + room() + log() + pending()
        do {
            let schema = try PostgresSchema.read(connection)
            found += schema.notes.map {
                warning(
                    "tables", $0, "Devices get what the tables are, not what they were.",
                    "See docs/postgresql.md, “Changing tables”.")
            }
            for table in schema.tables { found += try findings(of: table, schema.capture) }
            found += try leftOut(schema) + rules(schema)
        } catch let refusal as AdoptionError {
            found.append(
                error(
                    "tables", refusal.description, "A server will not start on these tables.",
                    "As said."))
        }
        return found
    }

    func error(_ check: String, _ what: String, _ why: String, _ fix: String) -> Finding {
        Finding(isError: true, check: check, what: what, why: why, fix: fix)
    }

    func warning(
        _ check: String, _ what: String, _ why: String, _ fix: String
    ) -> Finding {
        Finding(isError: false, check: check, what: what, why: why, fix: fix)
    }

    // MARK: - The server

    private func version() throws -> [Finding] {
        let number = Int(connection.serverVersion)
        guard number < 150_000 else { return [] }
        let what = "PostgreSQL is of version \(number / 10_000)."
        return [
            number < 130_000
                ? error(
                    "version", what, "Martlet needs functions of version 13.",
                    "Upgrade to 15 or later.")
                : warning("version", what, "Martlet is tested with 15.", "Upgrade when you can.")
        ]
    }

    private func settings() throws -> [Finding] {
        var found: [Finding] = []
        let off = try texts(
            """
            SELECT name FROM pg_catalog.pg_settings WHERE setting = 'off' \
            AND name IN ('fsync', 'full_page_writes', 'autovacuum') ORDER BY name
            """)
        for name in off {
            let fix = "ALTER SYSTEM SET \(name) = on; SELECT pg_reload_conf();"
            found.append(
                name == "autovacuum"
                    ? warning(
                        "settings", "autovacuum is off.",
                        "The tables of changes are written and emptied all day, and would bloat.",
                        fix)
                    : error(
                        "settings", "\(name) is off.",
                        "A crash of the machine can destroy what was acknowledged.", fix))
        }
        // The session's own value would hide the value that servers get.
        let commit = try texts(
            """
            SELECT setting FROM pg_catalog.pg_settings WHERE name = 'synchronous_commit' \
            AND setting = 'off'
            """)
        if !commit.isEmpty {
            found.append(
                error(
                    "settings", "synchronous_commit is off.",
                    "A crash can lose sets that devices were told are stored.",
                    """
                    ALTER SYSTEM SET synchronous_commit = on; SELECT pg_reload_conf(); and look for \
                    ALTER ROLE or ALTER DATABASE … SET synchronous_commit.
                    """))
        }
        let room = try connection.query(
            """
            SELECT current_setting('max_connections')::bigint, \
            (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend')
            """)
        let (most, used) = (try room.integer(0, 0), try room.integer(0, 1))
        if used * 5 > most * 4 {
            found.append(
                warning(
                    "connections", "\(used) of \(most) connections are in use.",
                    "A server takes about five for each data set, and fails without.",
                    "Raise max_connections, or close what is idle."))
        }
        for row in try texts(
            """
            SELECT unnest(setconfig) FROM pg_catalog.pg_db_role_setting \
            WHERE setdatabase IN (0, (SELECT oid FROM pg_catalog.pg_database \
            WHERE datname = current_database()))
            """)
        where row.hasPrefix("statement_timeout=")
            || row.hasPrefix("default_transaction_read_only=on")
            || row.hasPrefix("session_replication_role=replica")
        {
            found.append(
                warning(
                    "settings", "Sessions of this database begin with \(row).",
                    """
                    Servers set their own time-outs; other programs may be cut off, or write what no \
                    trigger notes.
                    """, "ALTER ROLE … RESET or ALTER DATABASE … RESET, unless it is meant."))
        }
        return found
    }

    /// The number of connections that a server needs for a data set.
    private static let fewestConnections: Int64 = 5

    /// Returns findings about the connection limits of the role and the database; -1 means no
    /// limit.
    private func rooms() throws -> [Finding] {
        let row = try connection.query(
            """
            SELECT (SELECT rolconnlimit FROM pg_catalog.pg_roles WHERE rolname = CURRENT_USER)::bigint, \
            (SELECT datconnlimit FROM pg_catalog.pg_database \
            WHERE datname = current_database())::bigint, CURRENT_USER::text, current_database()::text
            """)
        var found: [Finding] = []
        for (index, what) in ["ROLE", "DATABASE"].enumerated() {
            let most = try row.integer(0, index)
            guard most >= 0, most < Self.fewestConnections else { continue }
            let name = PostgresConnection.quoted(try row.text(0, index + 2))
            found.append(
                error(
                    "connections",
                    "The \(what.lowercased()) \(name) may have \(most) connections at most.",
                    "A server takes about five for each data set, and answers 503 without.",
                    "ALTER \(what) \(name) CONNECTION LIMIT -1;"))
        }
        return found
    }

    private func clock() throws -> [Finding] {
        let row = try connection.query(
            "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
        let skew = try row.integer(0, 0) - now
        guard abs(skew) > 5_000 else { return [] }
        return [
            warning(
                "clock", "The database's clock is \(skew / 1_000) s off this machine's.",
                "Times in the log, and the ends of tokens, go by the servers' clocks.",
                "Let both follow a time server.")
        ]
    }

    /// Returns a finding if commits wait for a synchronous standby. PostgreSQL waits without a
    /// limit.
    private func standby() throws -> [Finding] {
        let row = try connection.query(
            """
            SELECT count(*), \
            coalesce(max(extract(epoch FROM clock_timestamp() - state_change)), 0)::bigint, \
            current_setting('synchronous_standby_names') \
            FROM pg_catalog.pg_stat_activity WHERE wait_event = 'SyncRep'
            """)
        let (count, seconds) = (try row.integer(0, 0), try row.integer(0, 1))
        guard seconds >= 3 else { return [] }
        return [
            error(
                "standby",
                """
                Commits (\(count)) wait for a synchronous standby (wait_event SyncRep), one of them for \
                \(seconds) s.
                """, "Until a standby answers, no server accepts anything.",
                """
                Have one of the standbys “\(try row.text(0, 2))” run and connect (pg_stat_replication), \
                or take it out of synchronous_standby_names and SELECT pg_reload_conf().
                """)
        ]
    }

    private func activity() throws -> [Finding] {
        var found = try standby()
        let rows = try connection.query(
            """
            SELECT pid::bigint, coalesce(application_name, ''), \
            extract(epoch FROM clock_timestamp() - xact_start)::bigint \
            FROM pg_catalog.pg_stat_activity WHERE datname = current_database() \
            AND pid <> pg_backend_pid() AND xact_start < clock_timestamp() - interval '1 minute' \
            AND (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL) ORDER BY xact_start LIMIT 10
            """)
        for row in 0..<rows.count {
            let pid = try rows.integer(row, 0)
            found.append(
                warning(
                    "transactions",
                    """
                    Process \(pid) (“\(try rows.text(row, 1))”) has had a transaction open for \
                    \(try rows.integer(row, 2)) s.
                    """,
                    """
                    What it wrote reaches nobody before it ends; rows it locks are refused to \
                    devices as busy; nothing can be vacuumed.
                    """, "End it there, or: SELECT pg_terminate_backend(\(pid));"))
        }
        for name in try texts(
            "SELECT gid FROM pg_catalog.pg_prepared_xacts WHERE database = current_database()")
        {
            found.append(
                warning(
                    "transactions", "The prepared transaction “\(name)” waits.",
                    "It keeps its locks until somebody ends it.",
                    "COMMIT PREPARED or ROLLBACK PREPARED '\(name)';"))
        }
        return found
    }

    // MARK: - Martlet's tables

    private func log() throws -> [Finding] {
        var found: [Finding] = []
        let whole = try connection.query(
            """
            SELECT coalesce((SELECT max(revision) FROM _martlet.log), 0) = d.revision \
            AND coalesce((SELECT hash FROM _martlet.log ORDER BY revision DESC LIMIT 1), d.hash) \
            = d.hash FROM _martlet.dataset AS d
            """)
        if try !whole.boolean(0, 0) {
            found.append(
                error(
                    "log", "The log does not end where the data set is.",
                    "Devices would miss entries, or be told of another history.",
                    "Restore a backup; devices keep what they have and send it again."))
        }
        for name in try texts(
            """
            SELECT relname FROM pg_catalog.pg_class WHERE relnamespace = '_martlet'::regnamespace \
            AND relkind = 'r' AND relpersistence <> 'p' ORDER BY 1
            """)
        {
            found.append(unlogged("_martlet.\(name)"))
        }
        return found
    }

    private func unlogged(_ name: String) -> Finding {
        error(
            "unlogged", "The table \(name) is not logged.",
            "It is empty after a crash of the database.", "ALTER TABLE \(name) SET LOGGED;")
    }

    private func pending() throws -> [Finding] {
        let row = try connection.query(
            "SELECT count(*) FROM (SELECT FROM _martlet.foreign_changes LIMIT 100001) AS f")
        let count = try row.integer(0, 0)
        guard count > 100_000 else { return [] }
        return [
            warning(
                "pending", "More than 100,000 changes of other programs wait.",
                "No server takes them into the log, or it cannot keep up.",
                "Start a server: martlet serve --postgres URL")
        ]
    }

    // MARK: - The user's tables

    private func findings(
        of table: PostgresTable, _ capture: ExternalCapture
    ) throws -> [Finding] {
        do {
            return try triggers(of: table, capture) + storage(of: table) + sequence(of: table)
                + indexes(of: table)
        } catch let error as PostgresError where error.kind == .forbidden {
            return [
                self.error(
                    "rights", "The table “\(table.type.name)” cannot be read: \(error.message).",
                    "Servers can carry out nothing while they lack rights that they need.",
                    """
                    Run as the owner: GRANT USAGE ON SCHEMA \(PostgresConnection.quoted(table.schema)) and \
                    GRANT SELECT, INSERT, UPDATE, DELETE ON \(table.sqlName) TO the servers' role.
                    """)
            ]
        }
    }

    private func triggers(
        of table: PostgresTable, _ capture: ExternalCapture
    ) throws -> [Finding] {
        try ExternalTriggers.verify(on: connection, table: table, capture: capture).map {
            error(
                "triggers", $0, "What other programs write to it reaches no device.",
                "martlet postgres adopt --tables \(table.type.name), as said.")
        }
    }

    private func storage(of table: PostgresTable) throws -> [Finding] {
        let row = try connection.query(
            "SELECT relpersistence = 'p' FROM pg_catalog.pg_class WHERE oid = $1::bigint::oid",
            [.integer(Int64(table.relation))])
        return try row.count == 1 && !row.boolean(0, 0) ? [unlogged(table.sqlName)] : []
    }

    /// Returns a finding if a sequence will reach keys that rows already have, or has few keys
    /// left. Far keys do not matter, because a sequence set after one of them might have none left.
    private func sequence(of table: PostgresTable) throws -> [Finding] {
        guard table.nextKey != nil else { return [] }
        let name = try connection.query(
            "SELECT coalesce(pg_catalog.pg_get_serial_sequence($1, $2), '')",
            [.text(table.sqlName), .text(table.key.name)]
        ).text(0, 0)
        guard !name.isEmpty else { return [] }
        let row = try connection.query(
            """
            SELECT s.last_value, s.is_called, \
            coalesce((SELECT max(\(table.key.sqlName)) FROM \(table.sqlName) \
            WHERE \(table.key.sqlName) <= s.last_value + (q.seqmax - s.last_value) / 8), 0)::bigint, \
            q.seqmax FROM \(name) AS s, pg_catalog.pg_sequence AS q WHERE q.seqrelid = $1::text::regclass
            """, [.text(name)])
        let last = try row.integer(0, 0)
        let left = try row.integer(0, 3) - last
        guard left > 100 else {
            return [
                error(
                    "sequences", "The sequence \(name) has \(left) keys left.",
                    "New records of \(table.sqlName) are put off where there is no key for them.",
                    """
                    If the key is smaller than bigint, make it and its sequence bigint: ALTER SEQUENCE \
                    \(name) AS bigint NO MAXVALUE. Otherwise set it back to the last key that was given: \
                    SELECT setval('\(name)', …);
                    """
                )
            ]
        }
        let largest = try row.integer(0, 2)
        guard try largest > last || (largest == last && !row.boolean(0, 1)) else { return [] }
        return [
            error(
                "sequences",
                "The sequence \(name) stands at \(last); \(table.sqlName) has \(largest).",
                "It comes to a key that is taken. An insert by another program then fails.",
                "SELECT setval('\(name)', \(largest));")
        ]
    }

    private func indexes(of table: PostgresTable) throws -> [Finding] {
        try texts(
            """
            SELECT a.attname FROM pg_catalog.pg_constraint AS c \
            JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1] \
            WHERE c.contype = 'f' AND c.conrelid = \(Int64(table.relation))::oid \
            AND NOT EXISTS (SELECT FROM pg_catalog.pg_index AS i WHERE i.indrelid = c.conrelid \
            AND i.indisvalid AND i.indpred IS NULL AND i.indkey[0] = c.conkey[1]) ORDER BY 1
            """
        ).map { column in
            warning(
                "index", "\(table.sqlName).\(column) refers to another table and has no index.",
                "Every delete there reads all of \(table.sqlName).",
                """
                CREATE INDEX CONCURRENTLY ON \(table.sqlName) (\
                \(PostgresConnection.quoted(column)));
                """)
        }
    }

    /// Returns the first column of a query's rows.
    private func texts(_ sql: String) throws -> [String] {
        let rows = try connection.query(sql)
        var found: [String] = []
        for row in 0..<rows.count { found.append(try rows.text(row, 0)) }
        return found
    }
}
