package import MartletModel
internal import MartletProtocol
internal import MartletServerCore
package import PostgresKit

/// A data set in a database at one moment, from which a backup is made. Other programs can share
/// the moment as long as this is open.
package final class PostgresMoment {
    /// The snapshot's name for `pg_dump --snapshot`.
    package let snapshot: String
    package let dataSet: String
    package let identity: String
    package let revision: Revision
    /// The chained hash of the log at that revision.
    package let lineage: String
    /// The schema's fingerprint.
    package let schema: String
    private let connection: PostgresConnection

    /// Begins the moment. Blocks.
    /// - Throws: `PostgresRefusal` if there is no data set, or if no moment was found;
    ///   `AdoptionError`, `PostgresError`.
    package init(_ address: PostgresAddress) throws {
        connection = try PostgresConnection(
            address,
            PostgresOptions(
                statement: nil, idleInTransaction: nil, answer: nil, name: "martlet backup"))
        guard try MartletTables.dataSet(on: connection) != nil else {
            throw PostgresRefusal("The database (\(address)) has no data set.")
        }
        snapshot = try Self.begin(connection)
        let row = try connection.query(
            "SELECT name, identity, revision, hash FROM _martlet.dataset")
        dataSet = try row.text(0, 0)
        identity = try row.text(0, 1)
        revision = try row.integer(0, 2)
        lineage = LineageHash(stored: try row.binary(0, 3)).text
        schema = try PostgresSchema.read(connection).schema.fingerprint
    }

    /// The number of tries to find a moment at which all commits of others have been read.
    private static let tries = 50

    /// Begins the transaction, and exports its snapshot.
    private static func begin(_ connection: PostgresConnection) throws -> String {
        let logical = try LogicalMoment(connection)
        func hasUnread() throws -> Bool {
            do throws(PostgresError) {
                return try logical?.hasUnread(connection) ?? false
            } catch {
                guard error.kind == .busy else { throw error }
                throw PostgresRefusal(
                    """
                    A backup of a data set with --cdc logical needs a server that runs: it reads what other \
                    programs wrote before the backup. Now \(error.message).
                    """)
            }
        }
        defer { logical?.close() }
        for _ in 0..<tries {
            try connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            let snapshot = try connection.query("SELECT pg_catalog.pg_export_snapshot()").text(0, 0)
            guard try hasUnread() else { return snapshot }
            try connection.rollback()
        }
        throw PostgresRefusal(
            "Other programs write faster than it is read; take the backup when they do less.")
    }

    /// Ends the moment.
    package func end() {
        connection.close()
    }
}

/// The work after a dump was restored.
package enum PostgresRestoring {
    /// Returns whether a database has no tables at all, by any program.
    /// - Throws: `PostgresError` if the database does not answer.
    package static func isEmpty(_ address: PostgresAddress) throws(PostgresError) -> Bool {
        let connection = try PostgresConnection(
            address, PostgresOptions(name: "martlet restore"))
        defer { connection.close() }
        return try !connection.query(
            """
            SELECT EXISTS (SELECT FROM pg_catalog.pg_class AS c \
            JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace \
            WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm', 'S') AND n.nspname !~ '^pg_' \
            AND n.nspname <> 'information_schema')
            """
        ).boolean(0, 0)
    }

    /// Returns whether the database has a copy of a data set that neither `finish` nor a server has
    /// processed yet.
    /// - Throws: `AdoptionError` or `PostgresError` if the data set cannot be read.
    package static func isCutShort(_ address: PostgresAddress) throws -> Bool {
        let connection = try PostgresConnection(
            address, PostgresOptions(name: "martlet restore"))
        defer { connection.close() }
        guard try MartletTables.dataSet(on: connection) != nil else { return false }
        return try connection.query(
            "SELECT coalesce(home <> \(MartletTables.home), false) FROM _martlet.dataset"
        ).boolean(0, 0)
    }

    /// Checks that a restored data set ends at the revision of its manifest, upgrades Martlet's
    /// tables in it, and collects statistics of its tables for the planner.
    /// - Throws: `PostgresRefusal` if it ends elsewhere; `AdoptionError`, `PostgresError`.
    package static func finish(
        _ address: PostgresAddress, identity: String, revision: Revision, lineage: String
    ) throws {
        let connection = try PostgresConnection(
            address, PostgresOptions(statement: nil, answer: nil, name: "martlet restore"))
        defer { connection.close() }
        let row = try connection.query(
            """
            SELECT identity, revision, hash, xmin::text::bigint, \
            pg_snapshot_xmax(pg_current_snapshot()) FROM _martlet.dataset
            """)
        guard try row.text(0, 0) == identity, try row.integer(0, 1) == revision,
            LineageHash(stored: try row.binary(0, 2)).text == lineage
        else {
            throw PostgresRefusal(
                "The restored data set does not end where the backup's manifest says.")
        }
        // pg_restore wrote everything in the transaction that wrote this row.
        let next = UInt64(bitPattern: try row.integer(0, 4))
        let age = UInt32(truncatingIfNeeded: next) &- UInt32(try row.integer(0, 3))
        try MartletTables.upgrade(on: connection, copiedBefore: next - UInt64(age) + 1)
        try connection.execute("ANALYZE")
    }
}
