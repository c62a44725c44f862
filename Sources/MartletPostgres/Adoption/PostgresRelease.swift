package import PostgresKit

/// Removes Martlet from a database. The user's tables are then as they were before.
package struct PostgresRelease {
    private let connection: PostgresConnection

    package init(on connection: PostgresConnection) {
        self.connection = connection
    }

    /// Returns the steps of `release`, and changes nothing.
    /// - Parameter dropsSurrogates: Whether to drop key columns that adoption added, too.
    /// - Throws: `AdoptionError` if there is no data set, or one of another name; `PostgresError`.
    package func plan(name: String?, dropsSurrogates: Bool) throws -> [String] {
        let left = try leftOver()
        guard left.isEmpty else { return left.map(Self.dropping) }
        return try Catalogue.readOnly(on: connection) {
            try check(name)
            return try steps(dropsSurrogates, try PostgresSchema.read(connection))
        }
    }

    /// Removes the triggers, the schema `_martlet` with the log and all its contents, and, if
    /// asked, the key columns that were added. Devices keep their data, but cannot send it
    /// anywhere.
    ///
    /// If there is no data set any more, it drops the replication slot that an earlier one left
    /// behind.
    /// - Returns: Sentences about the steps.
    /// - Throws: The errors of `plan`, and `AdoptionError` while servers run, or if other users of
    ///   the tables block it repeatedly. The data set is then unchanged. If its replication slot is
    ///   gone already, the next server makes a new one.
    package func release(name: String?, dropsSurrogates: Bool) throws -> [String] {
        let slots = LogicalSlot(on: connection)
        let left = try leftOver()
        for slot in left { try slots.drop(slot, endsReader: true) }
        guard left.isEmpty else { return left.map(Self.dropping) }
        try check(name)
        try Self.checkServers(connection)
        let steps = try steps(dropsSurrogates, try PostgresSchema.read(connection))
        // The slot is dropped first, because that can fail, and can be repeated as long as the data
        // set names the slot: an unknown slot keeps the write-ahead log until the disk is full.
        if let logical = try LogicalState.read(connection) {
            try slots.drop(logical.slot, endsReader: true)
        }
        try removeAgain(name, dropsSurrogates)
        // A server that was still reading may have made the slot again.
        for slot in try leftOver() { try slots.drop(slot, endsReader: true) }
        return steps
    }

    /// Returns the slots of data sets that are gone.
    private func leftOver() throws -> [String] {
        guard try MartletTables.dataSet(on: connection) == nil else { return [] }
        return try LogicalSlot(on: connection).named()
    }

    private static func dropping(_ slot: String) -> String {
        "drop the replication slot “\(slot)”, which a data set has left behind"
    }

    /// The most times that the release locks the tables before it gives up because other sessions hold them.
    private static let mostTries = 5

    /// Removes Martlet, with several tries. A server that is reading may hold locks in another
    /// order, so that PostgreSQL ends one of the two. Nothing is removed then, and the server may
    /// be done at the next try.
    private func removeAgain(_ name: String?, _ dropsSurrogates: Bool) throws {
        for _ in 0..<Self.mostTries {
            do {
                return try remove(name, dropsSurrogates)
            } catch let error as PostgresError where error.isDeadlock {
                continue
            }
        }
        throw AdoptionError(
            """
            other programs use the data set's tables, so that PostgreSQL has ended the release \
            \(Self.mostTries) times; nothing was removed
            """,
            "stop the data set's servers and what else uses its tables, and release it again")
    }

    private func remove(_ name: String?, _ dropsSurrogates: Bool) throws {
        try connection.transaction {
            try check(name)
            try Self.checkServers(connection)
            _ = try connection.query("SELECT 1 FROM _martlet.dataset FOR UPDATE")
            let schema = try PostgresSchema.read(connection)
            for table in schema.tables {
                try ExternalTriggers.remove(on: connection, table: table)
                if dropsSurrogates, table.key.name == MartletTables.surrogate {
                    try connection.execute(
                        "ALTER TABLE \(table.sqlName) DROP COLUMN \(table.key.sqlName)")
                }
            }
            if let logical = try LogicalState.read(connection) {
                try connection.execute(
                    "DROP PUBLICATION IF EXISTS \(PostgresConnection.quoted(logical.publication))")
            }
            try connection.execute("DROP SCHEMA _martlet CASCADE")
        }
    }

    private func check(_ name: String?) throws {
        guard let found = try MartletTables.dataSet(on: connection) else {
            throw AdoptionError("the database holds no data set", "check the address")
        }
        guard name == nil || name == found.name else {
            throw AdoptionError(
                "the database holds the data set “\(found.name)”", "use --name \(found.name)")
        }
    }

    /// Checks that no server runs.
    /// - Throws: `AdoptionError` while a server writes to the data set, as far as the role can see
    ///   it.
    static func checkServers(_ connection: PostgresConnection) throws {
        let rows = try connection.query(
            """
            SELECT count(*) FROM pg_catalog.pg_stat_activity \
            WHERE datname = pg_catalog.current_database() AND application_name = $1
            """, [.text(writer)])
        guard try rows.integer(0, 0) == 0 else {
            throw AdoptionError(
                "\(try rows.integer(0, 0)) servers of the data set run",
                "stop them first")
        }
    }

    /// The name of a server's writing connection in the database's lists.
    private static let writer = "martlet writer"

    private func steps(_ dropsSurrogates: Bool, _ schema: PostgresSchema) throws -> [String] {
        var steps: [String] = []
        if let logical = try LogicalState.read(connection) {
            steps.append("drop the replication slot and the publication “\(logical.slot)”")
        }
        for table in schema.tables {
            steps.append("remove Martlet's triggers from \(table.sqlName)")
            guard table.key.name == MartletTables.surrogate else { continue }
            steps.append(
                dropsSurrogates
                    ? "drop the column \(table.key.name) of \(table.sqlName)"
                    : "leave the column \(table.key.name) of \(table.sqlName); --drop-surrogates "
                        + "drops it")
        }
        let rows = try connection.query("SELECT count(*) FROM _martlet.log")
        steps.append(
            "drop the schema “_martlet”, with a log of \(try rows.integer(0, 0)) change sets; what "
                + "devices have not sent yet can never be accepted")
        return steps
    }
}
