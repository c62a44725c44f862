import MartletModel
import PostgresKit

/// The publication of a data set: it decides which tables' changes the replication slot sends.
struct LogicalPublication {
    /// The completeness with which the slot sends the writes to one table.
    struct Line {
        let table: PostgresTable
        /// A text that identifies the publication and its line for the table. It changes if one of
        /// them was altered or recreated. Nil if not all rows, columns and operations of the table
        /// are sent.
        let member: String?
        /// The value of `member` up to which no write was missed. It differs from `member` if
        /// writes may have been missed since then; it is empty if only deletions and changes of
        /// keys may have been.
        let known: String?
        /// The reason why deletions do not name the record; nil if they do.
        let problem: AdoptionError.Problem?

        /// Whether the table must be compared with the log.
        var isOwed: Bool { member == nil || member != known }
        /// Whether the slot sends everything from now on.
        var isCaptured: Bool { member != nil && problem == nil }
        /// Whether all writes were read for as long as the publication existed.
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

    /// Makes the publication, and replaces one with that name.
    func make(_ tables: [PostgresTable]) throws(PostgresError) {
        try connection.execute(
            "DROP PUBLICATION IF EXISTS \(quoted); CREATE PUBLICATION \(quoted) \(Self.list(tables))"
        )
    }

    /// Makes the publication send all writes to the tables. Its lines that do so already stay
    /// unchanged.
    func complete(_ tables: [PostgresTable]) throws(PostgresError) {
        try connection.execute(
            """
            ALTER PUBLICATION \(quoted) SET \(Self.list(tables).dropFirst(4))
            """)
        let row = try connection.query(
            """
            SELECT \(Self.sendsAll) FROM pg_catalog.pg_publication AS p WHERE pubname = $1
            """, [.text(name)])
        // A change would make it another publication than the known one.
        if try row.boolean(0, 0) { return }
        try connection.execute(
            "ALTER PUBLICATION \(quoted) SET (publish = 'insert, update, delete, truncate')")
    }

    private static func list(_ tables: [PostgresTable]) -> String {
        tables.isEmpty ? "" : "FOR TABLE " + tables.map(\.sqlName).joined(separator: ", ")
    }

    private static let sendsAll = "p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate"

    /// The SQL for `Line.member` of the table `t` of `_martlet.types`.
    static let member = """
        (SELECT pg_catalog.concat_ws('/', p.oid, p.xmin, r.oid) \
        FROM pg_catalog.pg_publication AS p LEFT JOIN pg_catalog.pg_publication_rel AS r \
        ON r.prpubid = p.oid AND r.prrelid = t.relation::oid \
        WHERE p.pubname = (SELECT publication FROM _martlet.capture) \
        AND \(sendsAll) AND (p.puballtables OR r.oid IS NOT NULL AND pg_catalog.to_jsonb(r)->>'prqual' IS NULL \
        AND pg_catalog.to_jsonb(r)->>'prattrs' IS NULL))
        """

    /// Returns the tables' lines.
    func lines(of tables: [PostgresTable]) throws(PostgresError) -> [Line] {
        let rows = try connection.query(
            "SELECT t.number, \(Self.member), t.published FROM _martlet.types AS t")
        var rowIndices: [Int64: Int] = [:]
        for row in 0..<rows.count { rowIndices[try rows.integer(row, 0)] = row }
        let checks = LogicalChecks(connection)
        var lines: [Line] = []
        for table in tables {
            guard let row = rowIndices[table.number] else { continue }
            lines.append(
                Line(
                    table: table, member: rows.isNull(row, 1) ? nil : try rows.text(row, 1),
                    known: rows.isNull(row, 2) ? nil : try rows.text(row, 2),
                    problem: try checks.identity(of: table).first))
        }
        return lines
    }

    /// Notes that no write to these tables was missed up to now.
    func acknowledge(_ tables: [PostgresTable]) throws(PostgresError) {
        _ = try connection.query(
            """
            UPDATE _martlet.types AS t SET published = \(Self.member) \
            WHERE number IN (SELECT unnest($1::bigint[]))
            """, [PendingWrites.integers(tables.map(\.number))])
    }

    /// Notes that deletions and changes of keys of a table may have been missed.
    /// - Returns: Whether this was not noted before.
    static func missDeletions(
        of number: Int64, on connection: PostgresConnection
    ) throws(PostgresError) -> Bool {
        try connection.query(
            "UPDATE _martlet.types SET published = '' WHERE number = $1 AND published <> ''",
            [.integer(number)]
        ).affectedCount > 0
    }
}
