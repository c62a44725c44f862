import MartletModel
import MartletServerCore
import PostgresKit

/// Queries about records to Martlet's own tables, and their answers.
enum RecordLookup {
    private static let permanentSQL = """
        SELECT q.n, i.id FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY \
        AS q(device, type, temporary, n) CROSS JOIN LATERAL (SELECT o.id FROM _martlet.ids AS o \
        WHERE o.device = q.device AND o.type = q.type AND o.temporary = q.temporary LIMIT 1) AS i
        """

    private static let factsSQL = """
        SELECT q.n, r.revision, r.author, r.others, r.deleted \
        FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS q(type, id, n) \
        CROSS JOIN LATERAL (SELECT o.revision, o.author, o.others, o.deleted \
        FROM _martlet.records AS o WHERE o.type = q.type AND o.id = q.id LIMIT 1) AS r
        """

    /// The query for pending external writes. Mostly there are none, which one check finds out.
    private static let externalSQL = """
        SELECT q.n FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS q(type, id, n) \
        CROSS JOIN LATERAL (SELECT 1 FROM _martlet.foreign_changes AS c \
        WHERE c.type = q.type AND c.id = q.id LIMIT 1) AS c WHERE \(ExternalDrain.isPending)
        """

    /// Looks up the permanent ids of temporary ones.
    static func permanent(
        _ temporaries: [TemporaryAddress], _ tables: [PostgresTable]
    ) -> PostgresStatement {
        PostgresStatement(
            permanentSQL,
            [
                PendingWrites.integers(temporaries.map(\.device)),
                PendingWrites.integers(temporaries.map { tables[$0.type].number }),
                PendingWrites.integers(temporaries.map(\.number)),
            ])
    }

    static func permanent(
        _ rows: PostgresRows, of temporaries: [TemporaryAddress]
    ) throws(PostgresError) -> [TemporaryAddress: Int64] {
        var found: [TemporaryAddress: Int64] = [:]
        for row in 0..<rows.count {
            found[temporaries[Int(try rows.integer(row, 0)) - 1]] = try rows.integer(row, 1)
        }
        return found
    }

    /// Looks up the facts of records that are stored apart from their rows.
    static func facts(
        _ addresses: [RecordAddress], _ tables: [PostgresTable]
    ) -> PostgresStatement {
        PostgresStatement(factsSQL, named(addresses, tables))
    }

    static func facts(
        _ rows: PostgresRows, of addresses: [RecordAddress]
    ) throws(PostgresError) -> [RecordAddress: RowFacts] {
        var found: [RecordAddress: RowFacts] = [:]
        found.reserveCapacity(rows.count)
        for row in 0..<rows.count {
            found[addresses[Int(try rows.integer(row, 0)) - 1]] = RowFacts(
                revision: try rows.integer(row, 1), author: try rows.integer(row, 2),
                others: try rows.integer(row, 3), isDeleted: try rows.boolean(row, 4))
        }
        return found
    }

    /// Looks up the records with external writes that are not in the log yet.
    static func external(
        _ addresses: [RecordAddress], _ tables: [PostgresTable]
    ) -> PostgresStatement {
        PostgresStatement(externalSQL, named(addresses, tables))
    }

    static func external(
        _ rows: PostgresRows, of addresses: [RecordAddress]
    ) throws(PostgresError) -> Set<RecordAddress> {
        var found: Set<RecordAddress> = []
        for row in 0..<rows.count {
            found.insert(addresses[Int(try rows.integer(row, 0)) - 1])
        }
        return found
    }

    private static func named(
        _ addresses: [RecordAddress], _ tables: [PostgresTable]
    ) -> [PostgresValue] {
        [
            PendingWrites.integers(addresses.map { tables[$0.type].number }),
            PendingWrites.texts(addresses.map(\.id.description)),
        ]
    }
}
