package import PostgresKit

/// Changes the way in which Martlet learns of external writes, without losing any.
package struct CaptureSwitch {
    private let connection: PostgresConnection

    /// The advisory lock of the database that a change holds; any number would do.
    private static let lock: Int64 = 0x6D61_7274_6C65_7402

    /// Makes a switch on a connection.
    /// - Parameter connection: A connection without a time limit for statements.
    package init(on connection: PostgresConnection) {
        self.connection = connection
    }

    /// Checks if the server and the role allow a way of capture, before there is a data set.
    /// - Throws: `AdoptionError` with all obstacles; `PostgresError`.
    package func check(_ capture: ExternalCapture) throws {
        guard capture == .logical, try LogicalState.read(connection) == nil else { return }
        try LogicalChecks(connection).check([], isNew: true)
    }

    /// Returns the steps of `change`, and changes nothing.
    /// - Throws: The errors of `change`.
    package func plan(_ capture: ExternalCapture) throws -> PostgresAdoption.Report {
        let dataSet = try dataSet()
        let state = try LogicalState.read(connection)
        let schema = try PostgresSchema.read(connection)
        if let state, capture == .logical { return try report(of: state, schema.tables) }
        guard (state == nil) == (capture == .logical) else { return PostgresAdoption.Report() }
        switch capture {
        case .logical:
            try LogicalChecks(connection).check(schema.tables, isNew: true)
            return report(toLogical: LogicalState.name(dataSet), schema)
        case .triggers: return report(toTriggers: state?.slot ?? "", schema)
        }
    }

    /// Changes the way of capture, if it is another one now. Programs that write to the tables wait
    /// for a moment. Making a slot waits for open transactions.
    /// - Throws: `AdoptionError` with all obstacles; `PostgresError`. The way of capture is then
    ///   unchanged.
    package func change(to capture: ExternalCapture) throws -> PostgresAdoption.Report {
        try MartletTables.upgrade(on: connection)
        // Two changes at once would drop each other's slot and publication.
        _ = try connection.query("SELECT pg_advisory_lock($1)", [.integer(Self.lock)])
        defer { _ = try? connection.query("SELECT pg_advisory_unlock($1)", [.integer(Self.lock)]) }
        let report = try plan(capture)
        guard !report.steps.isEmpty else { return report }
        if try capture == .logical && LogicalState.read(connection) != nil { return try mend() }
        try PostgresRelease.checkServers(connection)
        switch capture {
        case .logical: try changeToLogical(LogicalState.name(try dataSet()))
        case .triggers: try changeToTriggers()
        }
        return report
    }

    private func dataSet() throws -> PostgresDataSet {
        guard let found = try MartletTables.dataSet(on: connection) else {
            throw AdoptionError(
                "the database holds no data set",
                "make one with martlet postgres init or martlet postgres adopt")
        }
        return found
    }

    // MARK: - As it is

    private func report(
        of state: LogicalState, _ tables: [PostgresTable]
    ) throws -> PostgresAdoption.Report {
        try LogicalChecks(connection).check(tables, isNew: false)
        guard try LogicalMending(on: connection).isNeeded(state, tables) else {
            return PostgresAdoption.Report()
        }
        return PostgresAdoption.Report(steps: [
            """
            make the publication and the replication slot “\(state.slot)” whole, and compare the tables with \
            the log
            """
        ])
    }

    /// Repairs like a server that begins to read. Servers may run.
    private func mend() throws -> PostgresAdoption.Report {
        let reader = LogicalReader(connection.address)
        defer { reader.close() }
        for _ in 0..<200 {
            guard try reader.step(within: .zero) == .elsewhere else { break }
            _ = try connection.query("SELECT pg_catalog.pg_sleep(0.05)")
        }
        var report = PostgresAdoption.Report(steps: reader.takeNotes())
        report.notes = reader.faults
        return report
    }

    // MARK: - To logical decoding

    private func report(toLogical name: String, _ schema: PostgresSchema) -> PostgresAdoption.Report
    {
        PostgresAdoption.Report(steps: [
            "make the publication and the replication slot “\(name)”; a server must run from then on, "
                + "or the slot keeps PostgreSQL's write-ahead log",
            "remove the triggers that note what other programs write from "
                + schema.tables.map(\.sqlName).joined(separator: ", "),
        ])
    }

    /// Changes to logical decoding. The publication is made first, because the slot looks its
    /// tables up in the state at the time of each write.
    private func changeToLogical(_ name: String) throws {
        let slot = LogicalSlot(on: connection)
        do {
            try slot.drop(name)
            try connection.transaction {
                try LogicalPublication(name, on: connection)
                    .make(try PostgresSchema.read(connection).tables)
            }
            _ = try slot.make(name)
            try connection.transaction {
                let schema = try PostgresSchema.read(connection)
                try lock(schema)
                for table in schema.tables {
                    try ExternalTriggers.install(
                        on: connection, table: table,
                        truncation: try Truncation.of(table, connection).triggers,
                        capture: .logical)
                }
                // No program writes to the tables now, and all earlier writes have been noted.
                _ = try connection.query(
                    """
                    INSERT INTO _martlet.capture (number, slot, publication, position, horizon) \
                    VALUES (1, $1, $1, pg_current_wal_insert_lsn(), \
                    pg_snapshot_xmin(pg_current_snapshot()))
                    """, [.text(name)])
                try LogicalPublication(name, on: connection).acknowledge(schema.tables)
                try raiseVersion()
            }
        } catch {
            if connection.isInTransaction { try? connection.rollback() }
            try? slot.drop(name)
            try? connection.execute(
                "DROP PUBLICATION IF EXISTS \(PostgresConnection.quoted(name))")
            throw error
        }
    }

    // MARK: - To triggers

    private func report(toTriggers slot: String, _ schema: PostgresSchema)
        -> PostgresAdoption.Report
    {
        PostgresAdoption.Report(steps: [
            "add the triggers that note what other programs write to "
                + schema.tables.map(\.sqlName).joined(separator: ", "),
            "read what the replication slot has yet to send, and drop “\(slot)” and its publication",
        ])
    }

    private func changeToTriggers() throws {
        guard let state = try LogicalState.read(connection) else { return }
        let reader = LogicalReader(connection.address)
        let wait = LogicalWait(connection.address)
        defer {
            reader.close()
            wait.close()
        }
        // This runs outside the transaction, because a slot that must be made again waits for open
        // transactions.
        try read(reader, wait)
        try connection.transaction {
            let schema = try PostgresSchema.read(connection)
            try lock(schema)
            // No program writes to the tables now. Writes from before the triggers are read here,
            // and before the triggers lock readers out, too.
            try read(reader, wait)
            reader.close()
            let comparison = LogicalComparison(
                on: connection, schema,
                owed: try LogicalPublication(state.publication, on: connection)
                    .lines(of: schema.tables).filter(\.isOwed), since: nil)
            _ = try comparison.enter(try comparison.find())
            for table in schema.tables {
                try ExternalTriggers.install(
                    on: connection, table: table,
                    truncation: try Truncation.of(table, connection).triggers)
            }
            try connection.execute(
                """
                DELETE FROM _martlet.capture;
                DROP PUBLICATION IF EXISTS \(PostgresConnection.quoted(state.publication))
                """)
            try raiseVersion()
        }
        try LogicalSlot(on: connection).drop(state.slot)
    }

    private func read(_ reader: LogicalReader, _ wait: LogicalWait) throws {
        let end = try wait.flushedPosition()
        for _ in 0..<600 {
            if try reader.step(within: .milliseconds(100)) == .elsewhere {
                _ = try connection.query("SELECT pg_catalog.pg_sleep(0.05)")
            }
            if let position = reader.position, position >= end { return }
        }
        throw AdoptionError(
            "the replication slot has more to send than could be read in a minute",
            "run a server until “martlet doctor” says that it has caught up, and try again")
    }

    // MARK: - Both

    private func lock(_ schema: PostgresSchema) throws(PostgresError) {
        _ = try connection.query("SELECT 1 FROM _martlet.dataset FOR UPDATE")
        for table in schema.tables {
            try connection.execute("LOCK TABLE \(table.sqlName) IN SHARE ROW EXCLUSIVE MODE")
        }
    }

    /// Raises the version of the tables. A server that knows another way of capture does not write.
    private func raiseVersion() throws(PostgresError) {
        _ = try connection.query("UPDATE _martlet.dataset SET tables = tables + 1")
    }
}
