package import PostgresKit

/// Takes Martlet out of a database again: the user's tables are as they were before.
package struct PostgresRelease {
    private let connection: PostgresConnection

    package init(on connection: PostgresConnection) {
        self.connection = connection
    }

    /// What `release` would do. Changes nothing.
    /// - Parameter dropsSurrogates: Whether key columns that adoption added go, too.
    /// - Throws: `AdoptionError` where there is no data set, or of another name; `PostgresError`.
    package func plan(name: String?, dropsSurrogates: Bool) throws -> [String] {
        try Catalogue.readOnly(on: connection) {
            try check(name)
            return try steps(dropsSurrogates, try PostgresSchema.read(connection))
        }
    }

    /// Removes the triggers, the schema `_martlet` with the log and everything in it, and, if asked,
    /// the key columns that were added. Devices keep what they have, and can send it nowhere.
    /// - Returns: Sentences about what was done.
    /// - Throws: As `plan`, and `AdoptionError` while servers run. Nothing has happened then.
    package func release(name: String?, dropsSurrogates: Bool) throws -> [String] {
        let logical = try LogicalState.read(connection)
        let steps = try remove(name, dropsSurrogates)
        // What drops a slot cannot be undone, so it comes when all else is done.
        if let logical { try LogicalSlot(on: connection).drop(logical.slot) }
        return steps
    }

    private func remove(_ name: String?, _ dropsSurrogates: Bool) throws -> [String] {
        try connection.transaction {
            try check(name)
            try Self.checkServers(connection)
            _ = try connection.query("SELECT 1 FROM _martlet.dataset FOR UPDATE")
            let schema = try PostgresSchema.read(connection)
            let steps = try steps(dropsSurrogates, schema)
            for table in schema.tables {
                try ForeignTriggers.remove(on: connection, table: table)
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
            return steps
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

    /// - Throws: `AdoptionError` while a server writes to the data set, as far as the role may see it.
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

    /// What a server's writing connection is called in the database's lists.
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
