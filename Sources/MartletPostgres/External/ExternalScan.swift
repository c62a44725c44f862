import MartletModel
import MartletServerCore
import PostgresKit

/// Reads noted changes together with the present rows, at one snapshot.
struct ExternalScan {
    /// All pending changes.
    struct Changes {
        /// The changes in the order of their numbers. Changes of unknown types, and with keys that
        /// no device can know, are left out.
        var changes: [ExternalChange] = []
        var transactions: Set<Int64> = []
    }

    /// A page of one transaction's changes.
    struct Page {
        struct Line {
            let number: Int64
            /// The record's id as it is noted.
            let id: String
            /// The record; nil if the change makes no entry, because the transaction changes the
            /// record again, or no device can know it.
            let record: ExternalRecord?
        }

        var lines: [Line] = []
        /// Whether no change of the transaction follows.
        var isLast = false
    }

    private let forms: [ExternalRowCodec]
    private let unsendable: UnsendableRows
    private let positions: [Int64: Int]
    /// A lateral subquery `k` with the row of the change `c`.
    private let rows: String

    let extent: ExternalDrain.Extent

    init(
        _ forms: [ExternalRowCodec], _ extent: ExternalDrain.Extent, _ unsendable: UnsendableRows
    ) {
        self.extent = extent
        self.unsendable = unsendable
        self.forms = forms
        positions = Dictionary(
            forms.map { ($0.table.number, $0.position) }, uniquingKeysWith: { first, _ in first })
        let lookups = forms.map { $0.lookup(of: "c") }
        // The limits prevent the planner from reading whole tables.
        rows =
            lookups.isEmpty
            ? "(SELECT NULL::text[] AS row WHERE false)"
            : "(\(lookups.joined(separator: " UNION ALL ")) LIMIT 1)"
    }

    private static let records = """
        (SELECT deleted, others FROM _martlet.records \
        WHERE type = c.type AND id = c.id LIMIT 1) AS r ON true
        """

    /// `RowFacts.others` of a record that the log has, and not as deleted; NULL for others.
    private static let known = "CASE WHEN NOT r.deleted THEN r.others END"

    /// The columns of a noted change. A comparison under the collation of the notes cannot use the
    /// index of a text key, so PostgreSQL would read a whole table for each note.
    private static let noted = #"number, transaction, type, id COLLATE "default" AS id"#

    // MARK: - All

    private static func pending(limit: Int) -> String {
        """
        SELECT p.number, f.transaction, f.author, p.type, p.id \
        FROM (SELECT transaction, author FROM _martlet.foreign_transactions \
        ORDER BY transaction LIMIT \(limit)) AS f LEFT JOIN LATERAL (SELECT \(noted) \
        FROM _martlet.foreign_changes WHERE transaction = f.transaction \
        ORDER BY number LIMIT \(limit)) AS p ON true ORDER BY p.number LIMIT \(limit)
        """
    }

    private func sql(limit: Int) -> String {
        """
        SELECT c.type, c.id, \(Self.known), k.row, c.number, c.transaction, c.author \
        FROM (\(Self.pending(limit: limit))) AS c \
        LEFT JOIN LATERAL \(Self.records) LEFT JOIN LATERAL \(rows) AS k ON true
        """
    }

    /// Returns all pending changes; nil if there are more than `extent.many` or more than
    /// `maxBytes`, if deletions are held, or if reading takes longer than `extent.time`.
    func changes(
        on connection: PostgresConnection, maxBytes: Int
    ) throws(PostgresError) -> Changes? {
        let answers = try connection.pipeline([
            [
                PostgresStatement(
                    """
                    SELECT count(*), \
                    EXISTS (SELECT FROM _martlet.foreign_transactions WHERE parted) \
                    FROM (\(Self.pending(limit: extent.many + 1))) AS c
                    """),
                PostgresStatement(sql(limit: extent.few + 1)),
            ]
        ])[0]
        let counted = try answers[0].get()
        let few = try answers[1].get()
        var changes = Changes()
        var bytes = 0
        if few.count <= extent.few {
            try add(few, to: &changes, &bytes)
            return changes.transactions.contains(ExternalHeld.transaction) ? nil : changes
        }
        guard try counted.integer(0, 0) <= extent.many, try !counted.boolean(0, 1) else {
            return nil
        }
        let deadline = ContinuousClock.now + extent.time
        // A cursor reads one snapshot, and needs memory for one page only.
        try connection.execute(
            "DECLARE martlet_foreign NO SCROLL CURSOR FOR \(sql(limit: extent.many + 1))")
        var isWhole = false
        while changes.changes.count <= extent.many, bytes < maxBytes, !isWhole,
            ContinuousClock.now < deadline
        {
            let page = try connection.query("FETCH \(extent.page) FROM martlet_foreign")
            try add(page, to: &changes, &bytes)
            isWhole = page.count < extent.page
        }
        try connection.execute("CLOSE martlet_foreign")
        return isWhole && changes.changes.count <= extent.many ? changes : nil
    }

    private func add(
        _ rows: PostgresRows, to changes: inout Changes, _ bytes: inout Int
    ) throws(PostgresError) {
        for row in 0..<rows.count {
            let transaction = try rows.integer(row, 5)
            changes.transactions.insert(transaction)
            // A transaction has no changes if they were rolled back or taken.
            guard !rows.isNull(row, 4), let record = try record(rows, row) else { continue }
            bytes += record.byteCount
            changes.changes.append(
                ExternalChange(
                    number: try rows.integer(row, 4), transaction: transaction,
                    author: rows.isNull(row, 6) ? nil : try rows.text(row, 6), record: record))
        }
    }

    /// Reads the type, the id, whether the record is known or left out, and the row.
    private func record(
        _ rows: PostgresRows, _ row: Int
    ) throws(PostgresError) -> ExternalRecord? {
        guard let position = positions[try rows.integer(row, 0)] else { return nil }
        let form = forms[position]
        guard let id = form.id(try rows.text(row, 1)) else { return nil }
        var content = ExternalRecord.Row.absent
        if case .array(let texts) = try rows.value(row, 3) { content = form.row(texts) }
        if let fault = SendableKey.fault(of: id, form.table.type) {
            if content != .absent { unsendable.note(form.table.type.name, id, fault) }
            return nil
        }
        let others = rows.isNull(row, 2) ? nil : try rows.integer(row, 2)
        return ExternalRecord(
            address: RecordAddress(position, id), isKnown: others != nil,
            isLeftOut: others == RowFacts.leftOut, row: content)
    }

    // MARK: - In parts

    /// A pending transaction.
    struct Pending {
        let transaction: Int64
        let author: String?
        /// Whether it has few changes and none of them has been taken yet.
        let isSmall: Bool
    }

    /// The most changes of a transaction that may be taken together with others.
    private static let smallChanges = 20

    /// Returns the pending transactions that began first, ordered by their last change. It looks at
    /// no others, because there may be millions.
    func transactions(
        on connection: PostgresConnection, limit: Int
    ) throws(PostgresError) -> [Pending] {
        let rows = try connection.query(
            """
            SELECT f.transaction, f.author, NOT f.parted AND NOT EXISTS (SELECT \
            FROM _martlet.foreign_changes WHERE transaction = f.transaction ORDER BY number \
            OFFSET \(Self.smallChanges) LIMIT 1) FROM (SELECT * FROM \
            ((SELECT transaction, author, parted FROM _martlet.foreign_transactions WHERE parted \
            ORDER BY transaction LIMIT $1) UNION (SELECT transaction, author, parted \
            FROM _martlet.foreign_transactions ORDER BY transaction LIMIT $1)) AS u \
            OFFSET 0) AS f ORDER BY \
            (SELECT number FROM _martlet.foreign_changes WHERE transaction = f.transaction \
            ORDER BY number DESC LIMIT 1) NULLS FIRST
            """, [.integer(Int64(limit))])
        var found: [Pending] = []
        for row in 0..<rows.count {
            let transaction = try rows.integer(row, 0)
            guard transaction != ExternalHeld.transaction else { continue }
            found.append(
                Pending(
                    transaction: transaction,
                    author: rows.isNull(row, 1) ? nil : try rows.text(row, 1),
                    isSmall: try rows.boolean(row, 2)))
        }
        return found
    }

    /// Returns all changes of small transactions, as `page` reads them.
    func lines(
        of transactions: [Int64], on connection: PostgresConnection
    ) throws(PostgresError) -> [Page.Line] {
        try lines(
            "(SELECT q.* FROM unnest($1::bigint[]) AS t "
                + "CROSS JOIN LATERAL (SELECT \(Self.noted) FROM _martlet.foreign_changes "
                + "WHERE transaction = t::text::xid8 ORDER BY number LIMIT \(Self.smallChanges)) "
                + "AS q)",
            [PendingWrites.integers(transactions)], on: connection)
    }

    /// Returns the next changes of a transaction.
    /// - Parameter number: The last change that was read.
    func page(
        of transaction: Int64, after number: Int64, on connection: PostgresConnection
    ) throws(PostgresError) -> Page {
        let lines = try lines(
            "(SELECT \(Self.noted) FROM _martlet.foreign_changes "
                + "WHERE transaction = $1::text::xid8 AND number > $2 "
                + "ORDER BY number LIMIT \(extent.page))",
            [.text(String(transaction)), .integer(number)], on: connection)
        return Page(lines: lines, isLast: lines.count < extent.page)
    }

    /// Returns the next held deletions of a type, in the order of their ids.
    /// - Parameter id: The last id that was read.
    func held(
        _ type: Int, after id: String?, on connection: PostgresConnection
    ) throws(PostgresError) -> Page {
        // Each deletion is read; a row number keeps the order.
        let lines = try lines(
            "(SELECT row_number() OVER (ORDER BY h.id) AS number, NULL::xid8 AS transaction, h.type, "
                + #"h.id COLLATE "default" AS id FROM _martlet.foreign_changes AS h "#
                + "WHERE h.type = $1 \(id == nil ? "" : "AND h.id > $2 ")"
                + "AND \(ExternalHeld.isHeld) ORDER BY h.id LIMIT \(extent.page))",
            [.integer(forms[type].table.number)] + (id.map { [.text($0)] } ?? []), on: connection)
        return Page(lines: lines, isLast: lines.count < extent.page)
    }

    /// Returns whether held deletions are also noted by other transactions.
    /// - Parameter id: The last id of the type to consider.
    func isNotedAgain(
        _ type: Int, through id: String, on connection: PostgresConnection
    ) throws(PostgresError) -> Bool {
        try connection.query(
            """
            SELECT EXISTS (SELECT FROM _martlet.foreign_changes AS h \
            JOIN _martlet.foreign_changes AS l ON l.type = h.type AND l.id = h.id \
            AND l.transaction <> h.transaction \
            WHERE h.type = $1 AND h.id <= $2 AND \(ExternalHeld.isHeld))
            """, [.integer(forms[type].table.number), .text(id)]
        ).boolean(0, 0)
    }

    /// Reads changes with their rows.
    /// - Parameter changes: SQL that returns the number, transaction, type and id of each change.
    private func lines(
        _ changes: String, _ parameters: [PostgresValue], on connection: PostgresConnection
    ) throws(PostgresError) -> [Page.Line] {
        // If a transaction notes a record again, the record is taken at the later note. The order
        // is then that of the last changes, which the tables' own constraints allowed. For a record
        // with very many notes, not all are checked, because taking it twice does no harm. It is
        // not left to another transaction, because held deletions wait only for transactions that
        // were pending.
        let rows = try connection.query(
            """
            SELECT c.type, c.id, \(Self.known), k.row, c.number, c.isLater \
            FROM (SELECT p.number, p.type, p.id, EXISTS (SELECT FROM (SELECT l.transaction, l.number \
            FROM _martlet.foreign_changes AS l WHERE l.type = p.type AND l.id = p.id LIMIT 50) AS l \
            WHERE l.transaction = p.transaction AND l.number > p.number) AS isLater \
            FROM \(changes) AS p OFFSET 0) AS c \
            LEFT JOIN LATERAL \(Self.records) \
            LEFT JOIN LATERAL \(self.rows) AS k ON NOT c.isLater ORDER BY c.number
            """, parameters)
        var lines: [Page.Line] = []
        for row in 0..<rows.count {
            let isLater = try rows.boolean(row, 5)
            lines.append(
                Page.Line(
                    number: try rows.integer(row, 4), id: try rows.text(row, 1),
                    record: isLater ? nil : try record(rows, row)))
        }
        return lines
    }

    /// Returns the records that the log does not have, with their present rows.
    func unknown(
        among addresses: [RecordAddress], on connection: PostgresConnection
    ) throws(PostgresError) -> [ExternalRecord] {
        guard !addresses.isEmpty else { return [] }
        let rows = try connection.query(
            """
            SELECT c.type, c.id, NULL::bigint, k.row \
            FROM unnest($1::bigint[], $2::text[]) AS c (type, id) \
            LEFT JOIN LATERAL \(Self.records) LEFT JOIN LATERAL \(self.rows) AS k ON true \
            WHERE r.deleted IS DISTINCT FROM false
            """,
            [
                .array(
                    PostgresArray(addresses.map { .integer(forms[$0.type].table.number) })),
                .array(PostgresArray(addresses.map { .text($0.id.description) })),
            ])
        var found: [ExternalRecord] = []
        for row in 0..<rows.count {
            if let record = try record(rows, row) { found.append(record) }
        }
        return found
    }
}
