import MartletModel
import PostgresKit

/// The publication of a data set: it decides which tables' changes the replication slot sends.
struct LogicalPublication {
    /// How completely the slot sends what is written to one table.
    struct Line {
        let table: PostgresTable
        /// What the publication and its line for the table are told by: another text if one was altered or
        /// made anew. Nil if not all rows, columns and operations of the table are sent.
        let member: String?
        /// The text up to which nothing was missed: another than `member` if writes may have been missed
        /// since, empty if only deletions and changes of keys may have been.
        let known: String?
        /// Why deletions do not name the record; nil if they do.
        let problem: AdoptionError.Problem?

        /// Whether the table has to be compared with the log.
        var isOwed: Bool { member == nil || member != known }
        /// Whether the slot sends everything from now on.
        var isCaptured: Bool { member != nil && problem == nil }
        /// Whether all writes were read as long as the publication was there.
        var isKnown: Bool { known?.isEmpty == false }
    }

    let name: String
    private let connection: PostgresConnection

    init(_ name: String, on connection: PostgresConnection) {
        self.name = name
        self.connection = connection
    }

    private var quoted: String { PostgresConnection.quoted(name) }

    func exists() throws(PostgresError) -> Bool {
        try connection.query(
            "SELECT EXISTS (SELECT FROM pg_catalog.pg_publication WHERE pubname = $1)",
            [.text(name)]
        ).boolean(0, 0)
    }

    /// Makes the publication, in place of one of that name.
    func make(_ tables: [PostgresTable]) throws(PostgresError) {
        try connection.execute(
            "DROP PUBLICATION IF EXISTS \(quoted); CREATE PUBLICATION \(quoted) \(Self.list(tables))"
        )
    }

    /// Has the publication send everything that is written to the tables. Lines that do stay as they are.
    func complete(_ tables: [PostgresTable]) throws(PostgresError) {
        try connection.execute(
            """
            ALTER PUBLICATION \(quoted) SET \(Self.list(tables).dropFirst(4))
            """)
        let row = try connection.query(
            """
            SELECT \(Self.sendsAll) FROM pg_catalog.pg_publication AS p WHERE pubname = $1
            """, [.text(name)])
        // It would be another publication than is known.
        if try row.boolean(0, 0) { return }
        try connection.execute(
            "ALTER PUBLICATION \(quoted) SET (publish = 'insert, update, delete, truncate')")
    }

    private static func list(_ tables: [PostgresTable]) -> String {
        tables.isEmpty ? "" : "FOR TABLE " + tables.map(\.sqlName).joined(separator: ", ")
    }

    private static let sendsAll = "p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate"

    /// SQL for `Line.member` of the table `t` of `_martlet.types`.
    static let member = """
        (SELECT pg_catalog.concat_ws('/', p.oid, p.xmin, r.oid) \
        FROM pg_catalog.pg_publication AS p LEFT JOIN pg_catalog.pg_publication_rel AS r \
        ON r.prpubid = p.oid AND r.prrelid = t.relation::oid \
        WHERE p.pubname = (SELECT publication FROM _martlet.capture) \
        AND \(sendsAll) AND (p.puballtables OR r.oid IS NOT NULL AND pg_catalog.to_jsonb(r)->>'prqual' IS NULL \
        AND pg_catalog.to_jsonb(r)->>'prattrs' IS NULL))
        """

    /// Returns how the tables stand.
    func lines(of tables: [PostgresTable]) throws(PostgresError) -> [Line] {
        let rows = try connection.query(
            "SELECT t.number, \(Self.member), t.published FROM _martlet.types AS t")
        var places: [Int64: Int] = [:]
        for row in 0..<rows.count { places[try rows.integer(row, 0)] = row }
        let checks = LogicalChecks(connection)
        var lines: [Line] = []
        for table in tables {
            guard let row = places[table.number] else { continue }
            lines.append(
                Line(
                    table: table, member: rows.isNull(row, 1) ? nil : try rows.text(row, 1),
                    known: rows.isNull(row, 2) ? nil : try rows.text(row, 2),
                    problem: try checks.identity(of: table).first))
        }
        return lines
    }

    /// Notes that nothing of these tables was missed up to now.
    func acknowledge(_ tables: [PostgresTable]) throws(PostgresError) {
        _ = try connection.query(
            """
            UPDATE _martlet.types AS t SET published = \(Self.member) \
            WHERE number IN (SELECT unnest($1::bigint[]))
            """, [PendingWrites.integers(tables.map(\.number))])
    }

    /// Notes that deletions and changes of keys of a table may have been missed.
    /// - Returns: Whether that is news.
    static func missDeletions(
        of number: Int64, on connection: PostgresConnection
    ) throws(PostgresError) -> Bool {
        try connection.query(
            "UPDATE _martlet.types SET published = '' WHERE number = $1 AND published <> ''",
            [.integer(number)]
        ).affectedCount > 0
    }
}
