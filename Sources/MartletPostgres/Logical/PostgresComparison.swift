import MartletCore
package import PostgresKit

/// Compares the tables of a data set with its log, and has the log take what it lacks.
///
/// Nothing of a row is read: PostgreSQL knows which transaction wrote it, and which wrote what the log
/// last says of it. Where nothing differs this is one scan of the tables, in the server.
package struct PostgresComparison {
    /// When a row that the log knows is other than the log says.
    package enum Rule: Hashable, Sendable {
        /// A transaction wrote it that nobody has read: one of this number or a later one.
        case unread(since: UInt64)
        /// It was written after the log was told of it last.
        case newer
    }

    /// What was found.
    package struct Differences: Hashable, Sendable {
        /// One record.
        package struct Record: Hashable, Sendable {
            package let type: String
            package let id: String
            package let isDeleted: Bool
        }

        /// Rows that the log knows otherwise, or not at all.
        package var changed: Int64 = 0
        /// Records of the log whose rows are gone.
        package var deleted: Int64 = 0
        /// Some of them.
        package var records: [Record] = []

        package var isEmpty: Bool { changed == 0 && deleted == 0 }
    }

    /// Records that are named at most.
    private static let mostNamed = 20

    private let connection: PostgresConnection
    private let schema: PostgresSchema

    /// - Parameter connection: Without limits of time for statements: tables may be large.
    package init(on connection: PostgresConnection, _ schema: PostgresSchema) {
        self.connection = connection
        self.schema = schema
    }

    /// Compares a data set's tables with its log, and if asked has the log take what differs. Blocks.
    /// - Throws: `AdoptionError` where there is no data set, or nobody reads its replication slot;
    ///   `PostgresError`.
    package static func run(
        on connection: PostgresConnection, repairs: Bool
    ) throws -> Differences {
        try MartletTables.upgrade(on: connection)
        if let moment = try LogicalMoment(connection) {
            defer { moment.close() }
            do throws(PostgresError) {
                try moment.awaitAll()
            } catch {
                guard error.kind == .busy else { throw error }
                throw AdoptionError(error.message, "what it has yet to send is no difference")
            }
        }
        let comparison = PostgresComparison(on: connection, try PostgresSchema.read(connection))
        let found = try comparison.find(.newer)
        if repairs, !found.isEmpty {
            _ = try connection.transaction { try comparison.enter(.newer) }
        }
        return found
    }

    /// Looks, and changes nothing. What is noted and not in the log yet is no difference.
    package func find(_ rule: Rule) throws(PostgresError) -> Differences {
        var found = Differences()
        for table in schema.tables {
            for isDeleted in [false, true] {
                let rows = try connection.query(
                    """
                    SELECT d.id, count(*) OVER () \
                    FROM (\(isDeleted ? Self.gone(table) : Self.changed(table, rule))) AS d (id) \
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
    package func enter(_ rule: Rule) throws(PostgresError) -> Differences {
        var found = Differences()
        // What others refer to comes first, and goes last.
        let tables = Self.parentsFirst(schema.tables)
        for table in tables {
            found.changed += Int64(
                try note(table, Self.changed(table, rule) + " ORDER BY t.\(table.key.sqlName)"))
        }
        for table in tables.reversed() {
            found.deleted += Int64(try note(table, Self.gone(table) + " ORDER BY r.id DESC"))
        }
        guard !found.isEmpty else { return found }
        _ = try connection.query(
            """
            INSERT INTO _martlet.foreign_transactions (transaction, author) \
            VALUES (pg_current_xact_id(), 'martlet compare') ON CONFLICT DO NOTHING
            """)
        return found
    }

    private func note(_ table: PostgresTable, _ ids: String) throws(PostgresError) -> Int {
        try connection.query(
            """
            INSERT INTO _martlet.foreign_changes (type, id) \
            SELECT \(table.number), d.id FROM (\(ids)) AS d (id)
            """
        ).affectedCount
    }

    // MARK: - SQL

    /// Keys of rows that the log does not know as they are.
    private static func changed(_ table: PostgresTable, _ rule: Rule) -> String {
        let isOther: String
        switch rule {
        case .unread(let horizon):
            isOther = isAfter("t.xmin", "\(horizon & 0xffff_ffff)", orSame: true)
        case .newer: isOther = isAfter("t.xmin", "r.xmin::text::bigint", orSame: false)
        }
        return """
            SELECT t.\(table.key.sqlName)::text FROM \(table.sqlName) AS t \
            LEFT JOIN _martlet.records AS r ON r.type = \(table.number) \
            AND r.id = t.\(table.key.sqlName)::text COLLATE "C" \
            WHERE \(mayBeKnown(table)) AND (r.id IS NULL OR r.deleted OR (\(isOther)))
            """
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
