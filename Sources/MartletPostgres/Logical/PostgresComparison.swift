import MartletModel
internal import MartletServerCore
package import PostgresKit

/// Compares the tables of a data set with its log, and has the log take what it lacks.
///
/// PostgreSQL knows which transaction wrote a row, and which wrote what the log last says of it. If nothing
/// differs by that, this is one scan of the tables, in the server, and nothing of a row is read. A row that a
/// later transaction wrote is only suspect: a drain takes in transactions that began after its own. The
/// values of such rows are compared with those that the log has.
package struct PostgresComparison {
    /// When a row that the log knows is other than the log says.
    package enum Rule: Hashable, Sendable {
        /// A transaction wrote it that nobody has read: one of this number or a later one.
        case unread(since: UInt64)
        /// It was written after the log was told of it last.
        case newer
        /// All rows: the table is another one than the log knows.
        case every
        /// No row that the log knows: what such rows hold is compared otherwise.
        case unknown
    }

    /// What was found.
    package struct Differences: Hashable, Sendable {
        /// One record.
        package struct Record: Hashable, Sendable {
            package let type: String
            package let id: String
            package let isDeleted: Bool
            /// Whether no device can be sent the row.
            package var isLeftOut = false
        }

        /// Rows that the log knows otherwise, or not at all.
        package var changed: Int64 = 0
        /// Records of the log whose rows are gone.
        package var deleted: Int64 = 0
        /// Rows that no device can be sent: under keys that no record has, and those of records whose
        /// edits are refused until the rows are corrected.
        package var leftOut: Int64 = 0
        /// Some of them.
        package var records: [Record] = []

        package var isEmpty: Bool { changed == 0 && deleted == 0 && leftOut == 0 }

        /// Adds one record whose row is other than the log says.
        fileprivate mutating func add(_ type: String, _ id: String) {
            changed += 1
            guard records.count < PostgresComparison.mostNamed else { return }
            records.append(Record(type: type, id: id, isDeleted: false))
        }
    }

    /// Records that are noted with one statement.
    private static let atOnce = 10_000
    /// Records that are named at most.
    static let mostNamed = 20

    let connection: PostgresConnection
    let schema: PostgresSchema

    /// - Parameter connection: Without limits of time for statements: tables may be large.
    package init(on connection: PostgresConnection, _ schema: PostgresSchema) {
        self.connection = connection
        self.schema = schema
    }

    /// Compares a data set's tables with its log, and if asked has the log take what differs. Blocks.
    /// - Parameter comparesValues: Whether the values of rows are compared, too, as far as the log has
    ///   them: reads the log and the tables whole.
    /// - Throws: `AdoptionError` where there is no data set, or nobody reads its replication slot;
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

    /// SQL for a row `t` with a line `r` whose values have to be compared.
    private static func suspects(_ table: PostgresTable, _ agreed: UInt64?) -> String {
        "r.others <> \(RowFacts.leftOut) AND (\(isNewer(agreed)))"
    }

    /// Waits until what other programs have committed is noted.
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

    /// Adds records whose values differ to what was found; not those that are noted, changed since they
    /// were compared, or found already. Within an open transaction.
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

    /// Looks, and changes nothing. What is noted and not in the log yet is no difference.
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

    /// Notes what differs as one transaction of another program, within the open transaction. What
    /// comes of it the next batch decides, by the rows as they are then.
    /// - Parameter wanted: The tables' numbers; nil for all.
    package func enter(
        _ rule: Rule, of wanted: Set<Int64>? = nil
    ) throws(PostgresError) -> Differences {
        try enter(rule, of: wanted, also: [])
    }

    /// - Parameter others: Records of these tables that are noted, too.
    func enter(
        _ rule: Rule, of wanted: Set<Int64>?, also others: [ValueComparison.Found]
    ) throws(PostgresError) -> Differences {
        var found = Differences()
        let agreed = try agreed()
        // What others refer to comes first, and goes last.
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

    /// Notes that the log knows the rows of a table as they are, because devices have been told of
    /// the changes.
    func acknowledge(_ table: PostgresTable) throws(PostgresError) {
        _ = try connection.query(
            """
            UPDATE _martlet.records SET revision = revision WHERE type = \(table.number) \
            AND NOT deleted AND id IN (\(Self.changed(table, .newer, try agreed())))
            """)
    }

    /// The transaction before which all rows are as the log says; nil if there is none, or if it is
    /// so old that no row is as old.
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

    /// Keys of rows that the log does not know as they are.
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

    /// SQL for whether a row was written after the log was told of it last.
    private static func isNewer(_ agreed: UInt64?) -> String {
        let isAfterMark = isAfter("t.xmin", "r.xmin::text::bigint", orSame: false)
        guard let agreed else { return isAfterMark }
        return isAfterMark + " AND " + isAfter("t.xmin", "\(agreed & 0xffff_ffff)", orSame: true)
    }

    /// A row with such a key can be sent to nobody.
    private static func mayBeKnown(_ table: PostgresTable) -> String {
        table.type.keyKind == .integer ? "t.\(table.key.sqlName) > 0" : "true"
    }

    /// Numbers of transactions go round: of two, one is after the other by less than half a round.
    /// Below 3 they stand for what is older than all.
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
