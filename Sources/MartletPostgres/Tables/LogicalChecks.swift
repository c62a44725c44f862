import MartletModel
import PostgresKit

/// Finds everything that prevents reading tables' changes from the write-ahead log.
struct LogicalChecks {
    private let connection: PostgresConnection

    init(_ connection: PostgresConnection) {
        self.connection = connection
    }

    /// Checks the server and the tables.
    /// - Parameter isNew: Whether the slot does not exist yet.
    /// - Throws: `AdoptionError` with all problems; `PostgresError` if the catalogue cannot be
    ///   read.
    func check(_ tables: [PostgresTable], isNew: Bool) throws {
        var problems: [AdoptionError.Problem] = []
        if isNew { problems += try server() }
        for table in tables { problems += try identity(of: table) }
        guard problems.isEmpty else { throw AdoptionError(problems) }
    }

    private func server() throws(PostgresError) -> [AdoptionError.Problem] {
        var problems: [AdoptionError.Problem] = []
        func refuse(_ what: String, _ remedy: String) {
            problems.append(AdoptionError.Problem(what, remedy))
        }
        if connection.serverVersion < 140_000 {
            refuse(
                "PostgreSQL is of version \(connection.serverVersion / 10_000), whose slots do not "
                    + "send what --cdc logical needs", "use 14 or later, or --cdc triggers")
        }
        let row = try connection.query(
            """
            SELECT current_setting('wal_level'), CURRENT_USER::text, \
            coalesce((SELECT rolsuper OR rolreplication FROM pg_catalog.pg_roles \
            WHERE rolname = CURRENT_USER), false), \
            (SELECT count(*) FROM pg_catalog.pg_replication_slots), \
            current_setting('max_replication_slots')::bigint, \
            (SELECT count(*) FROM pg_catalog.pg_stat_replication), \
            current_setting('max_wal_senders')::bigint
            """)
        let level = try row.text(0, 0)
        if level != "logical" {
            refuse(
                "wal_level is “\(level)”: the write-ahead log does not hold what was written to rows",
                "ALTER SYSTEM SET wal_level = logical; and start PostgreSQL again")
        }
        let user = try row.text(0, 1)
        if try !row.boolean(0, 2) {
            refuse(
                "the role “\(user)” may not read the write-ahead log",
                "ALTER ROLE \(PostgresConnection.quoted(user)) REPLICATION")
        }
        let (slots, mostSlots) = (try row.integer(0, 3), try row.integer(0, 4))
        if slots >= mostSlots {
            refuse(
                "all \(mostSlots) replication slots of the server are taken",
                "raise max_replication_slots and start PostgreSQL again, or drop one that nobody reads"
            )
        }
        let (senders, mostSenders) = (try row.integer(0, 5), try row.integer(0, 6))
        if senders >= mostSenders {
            refuse(
                "all \(mostSenders) senders of the server are taken",
                "raise max_wal_senders and start PostgreSQL again")
        }
        return problems
    }

    /// Checks that the write-ahead log names a changed or deleted row by its key.
    func identity(
        of table: PostgresTable
    ) throws(PostgresError) -> [AdoptionError.Problem] {
        let row = try connection.query(
            """
            SELECT c.relreplident = 'f' OR EXISTS (SELECT FROM pg_catalog.pg_index AS i \
            JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid \
            AND a.attnum = ANY (i.indkey) WHERE i.indrelid = c.oid AND a.attname = $2 \
            AND (c.relreplident = 'd' AND i.indisprimary \
            OR c.relreplident = 'i' AND i.indisreplident)), \
            (SELECT x.relname::text FROM pg_catalog.pg_index AS i \
            JOIN pg_catalog.pg_class AS x ON x.oid = i.indexrelid \
            JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid \
            AND a.attnum = i.indkey[0] WHERE i.indrelid = c.oid AND a.attname = $2 \
            AND i.indisunique AND i.indnkeyatts = 1 AND i.indpred IS NULL \
            AND i.indimmediate AND i.indexprs IS NULL LIMIT 1), \
            EXISTS (SELECT FROM pg_catalog.pg_index AS i WHERE i.indrelid = c.oid \
            AND i.indisprimary) FROM pg_catalog.pg_class AS c WHERE c.oid = $1::bigint::oid
            """, [.integer(Int64(table.relation)), .text(table.key.name)])
        guard row.count == 1 else { return [] }
        guard try !row.boolean(0, 0) else { return [] }
        let remedy =
            row.isNull(0, 1)
            ? "REPLICA IDENTITY FULL"
            : "REPLICA IDENTITY USING INDEX \(PostgresConnection.quoted(try row.text(0, 1)))"
        return [
            AdoptionError.Problem(
                """
                the write-ahead log would not say which rows of “\(table.type.name)” were changed: its \
                replica identity lacks the key “\(table.key.name)”
                """, "ALTER TABLE \(table.sqlName) \(remedy)")
        ]
    }
}
