import MartletServerCore
import PostgresKit

/// A database's description of its data set.
package struct PostgresDataSet: Hashable, Sendable {
    package let name: String
    package let identity: String
    /// The format of Martlet's own tables.
    package let format: Int64
}

extension MartletTables {
    /// The statements that upgrade the tables from each format to the next.
    typealias Steps = [Int64: String]

    /// The steps to the present format. Format 2 can record that external writes are read from the
    /// write-ahead log. Format 3 records its database, and more about columns than their names.
    /// Format 4 records the line of the publication by which a table is read. Format 5 has places for
    /// the members of views, and format 6 for the confirmations of devices.
    static let steps: Steps = [1: capture, 2: notes, 3: published, 4: views, 5: purges]

    /// Returns the data set of the database; nil if there is none.
    static func dataSet(on connection: PostgresConnection) throws -> PostgresDataSet? {
        let known = try connection.query(
            "SELECT pg_catalog.to_regclass('_martlet.dataset') IS NOT NULL")
        guard try known.boolean(0, 0) else { return nil }
        let rows = try connection.query("SELECT name, identity, format FROM _martlet.dataset")
        guard rows.count == 1 else {
            throw AdoptionError(
                "the schema “_martlet” of the database holds no data set",
                "look what else made it, and drop it with DROP SCHEMA _martlet CASCADE")
        }
        return PostgresDataSet(
            name: try rows.text(0, 0), identity: try rows.text(0, 1),
            format: try rows.integer(0, 2))
    }

    /// Makes Martlet's tables in a database without them, within the open transaction.
    /// - Parameter identity: The data set's identity: 32 random hexadecimal digits.
    static func create(
        on connection: PostgresConnection, name: String, identity: String
    ) throws(PostgresError) {
        try connection.execute(script)
        _ = try connection.query(
            """
            INSERT INTO _martlet.dataset (number, format, name, identity, revision, floor, hash, home) \
            VALUES (1, $1, $2, $3, 0, 0, $4, \(home))
            """,
            [
                .integer(format), .text(name), .text(identity),
                .binary(LineageHash(origin: identity).bytes),
            ])
    }

    /// Upgrades the tables from an older release's format to this one, in one transaction; does
    /// nothing if they have it. If several processes try at once, one does it and the others wait.
    /// It also clears notes that a copy brought along from another database.
    /// - Parameter horizon: The transaction before which all rows agree with the log, if the tables
    ///   are a copy for which it is known; otherwise 0.
    /// - Throws: `AdoptionError` if there are no tables, or a newer release wrote them;
    ///   `PostgresError`.
    static func upgrade(
        on connection: PostgresConnection, steps: Steps = steps, to target: Int64 = format,
        copiedBefore horizon: UInt64 = 0
    ) throws {
        guard let found = try dataSet(on: connection) else {
            throw AdoptionError(
                "the database holds no data set",
                "make one with martlet postgres init or martlet postgres adopt")
        }
        guard found.format < target else {
            guard found.format == target else { throw newer(found.format, target) }
            return try clearNotes(on: connection, horizon)
        }
        try connection.transaction {
            let rows = try connection.query("SELECT format FROM _martlet.dataset FOR UPDATE")
            let start = try rows.integer(0, 0)
            guard start <= target else { throw newer(start, target) }
            for format in start..<target {
                guard let step = steps[format] else {
                    throw AdoptionError(
                        "Martlet's tables are of format \(format), which this version cannot upgrade",
                        "start a version between the one that wrote them and this one first")
                }
                try connection.execute(step)
                _ = try connection.query(
                    "UPDATE _martlet.dataset SET format = $1", [.integer(format + 1)])
            }
        }
        try clearNotes(on: connection, horizon)
    }

    /// The SQL for an identifier that distinguishes this database from every copy of it.
    static let home = """
        (SELECT system_identifier::text FROM pg_catalog.pg_control_system()) || '/' \
        || (SELECT oid::text FROM pg_catalog.pg_database WHERE datname = current_database())
        """

    /// Clears the notes of a dump that mean nothing in this database: numbers of transactions and
    /// files, and positions in the write-ahead log. The dump contains the rows and the changes that
    /// are not in the log yet, so all rows agree with the log. With a replication slot, the dump
    /// lacks those changes, and the rows are compared by values (decision 0245). It also retires the views:
    /// devices may have been at the original since. It does nothing if the tables are still in their
    /// database.
    private static func clearNotes(on connection: PostgresConnection, _ horizon: UInt64) throws {
        let isHome = "coalesce(home = \(home), false)"
        guard try !connection.query("SELECT \(isHome) FROM _martlet.dataset").boolean(0, 0)
        else { return }
        try connection.transaction {
            let row = try connection.query(
                "SELECT \(isHome), home IS NULL FROM _martlet.dataset FOR UPDATE")
            if try !row.boolean(0, 0), try !row.boolean(0, 1) {
                try connection.execute(
                    """
                    UPDATE _martlet.dataset SET settled = pg_snapshot_xmin(pg_current_snapshot());
                    UPDATE _martlet.capture SET position = NULL, horizon = '\(horizon)';
                    UPDATE _martlet.types SET file = NULL;
                    UPDATE _martlet.columns SET place = NULL, form = NULL, version = NULL;
                    \(ViewScan.retirement(prefix: "_martlet."))
                    """)
                if horizon > 0, let state = try LogicalState.read(connection) {
                    let tables = try PostgresSchema.read(connection).tables
                    let publication = LogicalPublication(state.publication, on: connection)
                    let known = try publication.lines(of: tables).filter(\.isKnown)
                    try publication.acknowledge(known.map(\.table))
                }
            }
            _ = try connection.query("UPDATE _martlet.dataset SET home = \(home)")
        }
    }

    private static func newer(_ found: Int64, _ known: Int64) -> AdoptionError {
        AdoptionError(
            """
            the database was written by a newer version of Martlet (format \(found), this one knows \
            \(known))
            """, "use that version")
    }
}
