import MartletModel
internal import MartletServerCore
package import PostgresKit

/// Compares the tables of a data set with its log, and makes the log take the differences.
///
/// PostgreSQL knows which transaction wrote a row, and which one wrote the log's facts of it. If
/// these agree everywhere, the comparison is one scan of the tables in the server, and reads no
/// rows. A row that a later transaction wrote is only suspect, because a drain takes in
/// transactions that began after its own. The values of such rows are compared with the log's
/// values.
package struct PostgresComparison {
    /// The condition for a row that the log knows to be different.
    package enum Rule: Hashable, Sendable {
        /// A transaction with this number or a later one wrote it, which has not been read.
        case unread(since: UInt64)
        /// It was written after the log's facts of it.
        case newer
        /// All rows are different, because the table is another one than the log knows.
        case every
        /// No row that the log knows is different. The values of such rows are compared in another
        /// way.
        case unknown
    }

    /// The differences found.
    package struct Differences: Hashable, Sendable {
        /// One different record.
        package struct Record: Hashable, Sendable {
            package let type: String
            package let id: String
            package let isDeleted: Bool
            /// Whether no device can receive the row.
            package var isLeftOut = false
        }

        /// The number of rows that the log knows with other values, or not at all.
        package var changed: Int64 = 0
        /// The number of records of the log whose rows are gone.
        package var deleted: Int64 = 0
        /// The number of rows that no device can receive: rows with keys that no record has, and
        /// rows of records whose edits are refused until the rows are corrected.
        package var leftOut: Int64 = 0
        /// Some of the different records.
        package var records: [Record] = []

        package var isEmpty: Bool { changed == 0 && deleted == 0 && leftOut == 0 }

        /// Adds one record whose row differs from the log.
        fileprivate mutating func add(_ type: String, _ id: String) {
            changed += 1
            guard records.count < PostgresComparison.mostNamed else { return }
            records.append(Record(type: type, id: id, isDeleted: false))
        }
    }

    /// The most records noted with one statement.
    private static let atOnce = 10_000
    /// The most records that are named.
    static let mostNamed = 20

    let connection: PostgresConnection
    let schema: PostgresSchema

    /// Makes a comparison.
    /// - Parameter connection: A connection without a time limit for statements, because tables may
    ///   be large.
    package init(on connection: PostgresConnection, _ schema: PostgresSchema) {
        self.connection = connection
        self.schema = schema
    }

    /// Compares a data set's tables with its log, and makes the log take the differences if
    /// `repairs` is true. Blocks.
    /// - Parameter comparesValues: Whether to compare the values of rows, too, as far as the log
    ///   has them. This reads the log and the tables completely.
    /// - Throws: `AdoptionError` if there is no data set, or no process reads its replication slot;
    ///   `PostgresError`.
    package static func run(
        on connection: PostgresConnection, repairs: Bool, comparesValues: Bool = false
    ) throws -> Differences {
        try MartletTables.upgrade(on: connection)
        try awaitReading(on: connection)
        let schema = try PostgresSchema.read(connection)
        let comparison = PostgresComparison(on: connection, schema)
        var found = try comparison.find(.newer)
        var others: [ValueComparison.Found] = []
        if found.changed > 0 || comparesValues {
            let agreed = try comparison.agreed()
            let extent = ValueComparison.Extent(
                suspects: { suspects($0, agreed) }, takesOthers: comparesValues)
            others = try ValueComparison(on: connection, schema).find(extent)
            found = try comparison.find(.unknown)
        }
        if !others.isEmpty {
            // The log does not know yet of writes that were made during the search.
            try awaitReading(on: connection)
        }
        if repairs, !found.isEmpty {
            _ = try connection.transaction { try comparison.enter(.unknown) }
        }
        if !others.isEmpty {
            try connection.transaction {
                try comparison.addDiffering(others, notes: repairs, into: &found)
            }
        }
        try comparison.addLeftOut(to: &found)
        if repairs { try connection.transaction { try comparison.enterLeftOut() } }
        return found
    }

    /// Returns SQL for whether the values of a row `t` with a line `r` must be compared.
    private static func suspects(_ table: PostgresTable, _ agreed: UInt64?) -> String {
        "r.others <> \(RowFacts.leftOut) AND (\(isNewer(agreed)))"
    }

    /// Waits until everything that other programs have committed is noted.
    private static func awaitReading(on connection: PostgresConnection) throws {
        guard let moment = try LogicalMoment(connection) else { return }
        defer { moment.close() }
        do throws(PostgresError) {
            try moment.awaitAll()
        } catch {
            guard error.kind == .busy else { throw error }
            throw AdoptionError(error.message, "what it has yet to send is no difference")
        }
    }

    /// Adds records whose values differ, within an open transaction. It leaves out records that are
    /// noted, that changed since they were compared, or that were found already.
    private func addDiffering(
        _ others: [ValueComparison.Found], notes: Bool, into found: inout Differences
    ) throws(PostgresError) {
        var isNoted = false
        for (type, table) in schema.tables.enumerated() {
            let those = others.filter { $0.type == type }
            guard !those.isEmpty else { continue }
            let rows = try connection.query(
                """
                SELECT q.id FROM unnest($1::text[], $2::bigint[]) AS q (id, revision) \
                JOIN _martlet.records AS r ON r.type = \(table.number) AND r.id = q.id COLLATE "C" \
                AND q.revision IN (0, r.revision) AND NOT r.deleted \
                AND r.others <> \(RowFacts.leftOut) \
                WHERE NOT EXISTS (SELECT FROM _martlet.foreign_changes AS c \
                WHERE c.type = \(table.number) AND c.id = q.id COLLATE "C") ORDER BY q.id
                """,
                [
                    PendingWrites.texts(those.map(\.id.description)),
                    PendingWrites.integers(those.map(\.revision)),
                ])
            var ids: [String] = []
            for row in 0..<rows.count { ids.append(try rows.text(row, 0)) }
            for id in ids { found.add(table.type.name, id) }
            guard notes, !ids.isEmpty else { continue }
            isNoted = true
            try note(table, ids)
        }
        if isNoted { try noteTransaction() }
    }

    /// Finds differences, and changes nothing. Records with notes that are not in the log yet are
    /// no difference.
    /// - Throws: `PostgresError` if a query fails.
    package func find(_ rule: Rule) throws(PostgresError) -> Differences {
        var found = Differences()
        let agreed = try agreed()
        for table in schema.tables {
            for isDeleted in [false, true] {
                let ids = isDeleted ? Self.gone(table) : Self.changed(table, rule, agreed)
                let rows = try connection.query(
                    """
                    SELECT d.id, count(*) OVER () FROM (\(ids)) AS d (id) \
                    WHERE NOT EXISTS (SELECT FROM _martlet.foreign_changes AS c \
                    WHERE c.type = \(table.number) AND c.id = d.id) \
                    ORDER BY d.id LIMIT \(Self.mostNamed)
                    """)
                guard rows.count > 0 else { continue }
                let count = try rows.integer(0, 1)
                if isDeleted { found.deleted += count } else { found.changed += count }
                for row in 0..<rows.count where found.records.count < Self.mostNamed {
                    found.records.append(
                        .init(
                            type: table.type.name, id: try rows.text(row, 0),
                            isDeleted: isDeleted))
                }
            }
        }
        return found
    }

    /// Notes the differences as one external transaction, within the open transaction. The next
    /// batch takes the rows in their state at that time.
    /// - Parameter wanted: The tables' numbers; nil for all.
    /// - Throws: `PostgresError` if a statement fails.
    package func enter(
        _ rule: Rule, of wanted: Set<Int64>? = nil
    ) throws(PostgresError) -> Differences {
        try enter(rule, of: wanted, also: [])
    }

    /// Notes the differences and other records as one external transaction.
    /// - Parameter others: Other records of these tables to note.
    func enter(
        _ rule: Rule, of wanted: Set<Int64>?, also others: [ValueComparison.Found]
    ) throws(PostgresError) -> Differences {
        var found = Differences()
        let agreed = try agreed()
        // Parents are noted first, and their deletions last.
        let tables = Self.parentsFirst(schema.tables).filter {
            wanted?.contains($0.number) ?? true
        }
        for table in tables {
            let ids = Self.changed(table, rule, agreed) + " ORDER BY t.\(table.key.sqlName)"
            found.changed += Int64(try note(table, ids))
            let those = others.filter { schema.tables[$0.type].number == table.number }
            found.changed += Int64(those.count)
            try note(table, those.map(\.id.description))
        }
        for table in tables.reversed() {
            found.deleted += Int64(try note(table, Self.gone(table) + " ORDER BY r.id DESC"))
        }
        guard !found.isEmpty else { return found }
        try noteTransaction()
        return found
    }

    func noteTransaction() throws(PostgresError) {
        _ = try connection.query(
            """
            INSERT INTO _martlet.foreign_transactions (transaction, author) \
            VALUES (pg_current_xact_id(), 'martlet compare') ON CONFLICT DO NOTHING
            """)
    }

    /// Notes that the log knows the present rows of a table, because devices have received the
    /// changes.
    func acknowledge(_ table: PostgresTable) throws(PostgresError) {
        _ = try connection.query(
            """
            UPDATE _martlet.records SET revision = revision WHERE type = \(table.number) \
            AND NOT deleted AND id IN (\(Self.changed(table, .newer, try agreed())))
            """)
    }

    /// Returns the transaction before which all rows agree with the log; nil if there is none, or
    /// if it is older than any row.
    private func agreed() throws(PostgresError) -> UInt64? {
        let row = try connection.query(
            "SELECT settled, pg_snapshot_xmax(pg_current_snapshot()) FROM _martlet.dataset")
        guard row.count == 1, !row.isNull(0, 0) else { return nil }
        let agreed = UInt64(bitPattern: try row.integer(0, 0))
        let next = UInt64(bitPattern: try row.integer(0, 1))
        return next < agreed + 2_000_000_000 ? agreed : nil
    }

    private func note(_ table: PostgresTable, _ ids: String) throws(PostgresError) -> Int {
        try connection.query(
            """
            INSERT INTO _martlet.foreign_changes (type, id) \
            SELECT \(table.number), d.id FROM (\(ids)) AS d (id)
            """
        ).affectedCount
    }

    private func note(_ table: PostgresTable, _ ids: [String]) throws(PostgresError) {
        for start in stride(from: 0, to: ids.count, by: Self.atOnce) {
            _ = try connection.query(
                """
                INSERT INTO _martlet.foreign_changes (type, id) \
                SELECT \(table.number), unnest($1::text[])
                """,
                [PendingWrites.texts(Array(ids[start..<min(start + Self.atOnce, ids.count)]))])
        }
    }

    // MARK: - SQL

    /// Returns SQL for the keys of rows that the log does not know in their present state.
    private static func changed(
        _ table: PostgresTable, _ rule: Rule, _ agreed: UInt64?
    ) -> String {
        let isOther: String
        switch rule {
        case .unread(let horizon):
            isOther = isAfter("t.xmin", "\(horizon & 0xffff_ffff)", orSame: true)
        case .newer: isOther = isNewer(agreed)
        case .every: isOther = "true"
        case .unknown: isOther = "false"
        }
        return """
            SELECT t.\(table.key.sqlName)::text FROM \(table.sqlName) AS t \
            LEFT JOIN _martlet.records AS r ON r.type = \(table.number) \
            AND r.id = t.\(table.key.sqlName)::text COLLATE "C" \
            WHERE \(mayBeKnown(table)) AND (r.id IS NULL OR r.deleted OR (\(isOther)))
            """
    }

    /// Returns SQL for whether a row was written after the log's facts of it.
    private static func isNewer(_ agreed: UInt64?) -> String {
        let isAfterMark = isAfter("t.xmin", "r.xmin::text::bigint", orSame: false)
        guard let agreed else { return isAfterMark }
        return isAfterMark + " AND " + isAfter("t.xmin", "\(agreed & 0xffff_ffff)", orSame: true)
    }

    /// Returns SQL for whether a row has a key that a record can have. No device can receive a row
    /// with another key.
    private static func mayBeKnown(_ table: PostgresTable) -> String {
        table.type.keyKind == .integer ? "t.\(table.key.sqlName) > 0" : "true"
    }

    /// Returns SQL for whether one transaction is after another. The numbers wrap around, so the
    /// later one follows by less than half of their range. Numbers below 3 mean that a row is older
    /// than all.
    private static func isAfter(_ version: String, _ other: String, orSame: Bool) -> String {
        """
        \(version)::text::bigint > 2 AND \
        (\(version)::text::bigint - \(other) + 4294967296) % 4294967296 \
        BETWEEN \(orSame ? 0 : 1) AND 2147483647
        """
    }

    private static func gone(_ table: PostgresTable) -> String {
        """
        SELECT r.id FROM _martlet.records AS r WHERE r.type = \(table.number) AND NOT r.deleted \
        AND NOT EXISTS (SELECT FROM \(table.sqlName) AS t \
        WHERE t.\(table.key.sqlName)::text COLLATE "C" = r.id)
        """
    }

    private static func parentsFirst(_ tables: [PostgresTable]) -> [PostgresTable] {
        var left = tables
        var sorted: [PostgresTable] = []
        while !left.isEmpty {
            let names = Set(left.map(\.type.name))
            let next =
                left.firstIndex { table in
                    !table.type.references.contains {
                        $0.target != table.type.name && names.contains($0.target)
                    }
                } ?? 0
            sorted.append(left.remove(at: next))
        }
        return sorted
    }
}
