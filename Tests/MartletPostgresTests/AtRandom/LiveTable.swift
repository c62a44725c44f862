import PostgresKit

/// A table as the catalogue has it at this moment, for those who write to it and for those who judge what
/// became of that. Martlet's own reading of tables takes no part.
struct LiveTable {
    struct Column {
        let name: String
        /// The name of the type, of a domain that of what it is over.
        let type: String
        let isRequired: Bool
        /// Whether PostgreSQL alone gives it values.
        let isComputed: Bool
        let isKey: Bool
        /// The table that it refers to.
        let target: UInt32?
        /// Of an enumeration.
        let labels: [String]
        let hasDefault: Bool

        var quoted: String { PostgresConnection.quoted(name) }
        var isNumber: Bool { ["float4", "float8"].contains(type) }
    }

    /// What devices call it.
    let type: String
    let oid: UInt32
    /// The table as SQL names it.
    let sql: String
    let name: String
    let columns: [Column]

    var keys: [Column] { columns.filter(\.isKey) }
    /// The key, if it is one column.
    var key: Column? { keys.count == 1 ? keys.first : nil }
    /// What a program may give values.
    var writable: [Column] { columns.filter { !$0.isComputed && !$0.isKey } }

    /// The tables of the data set that are there.
    static func all(_ connection: PostgresConnection) throws -> [LiveTable] {
        let tables = try connection.query(
            """
            SELECT t.name, c.oid::bigint, quote_ident(n.nspname) || '.' || quote_ident(c.relname), \
            c.relname::text FROM _martlet.types AS t JOIN pg_class AS c ON c.oid = t.relation::oid \
            JOIN pg_namespace AS n ON n.oid = c.relnamespace ORDER BY t.number
            """)
        return try (0..<tables.count).map { row in
            let oid = UInt32(try tables.integer(row, 1))
            return LiveTable(
                type: try tables.text(row, 0), oid: oid, sql: try tables.text(row, 2),
                name: try tables.text(row, 3), columns: try columns(of: oid, connection))
        }
    }

    private static func columns(
        of oid: UInt32, _ connection: PostgresConnection
    ) throws -> [Column] {
        let rows = try connection.query(
            """
            SELECT a.attname::text, (WITH RECURSIVE b AS (\
            SELECT oid, typbasetype, typname FROM pg_type WHERE oid = a.atttypid UNION ALL \
            SELECT t.oid, t.typbasetype, t.typname FROM pg_type AS t JOIN b ON t.oid = b.typbasetype) \
            SELECT typname::text FROM b WHERE typbasetype = 0), a.attnotnull, \
            a.attgenerated <> '' OR a.attidentity = 'a', \
            CASE WHEN EXISTS (SELECT FROM pg_attribute AS s WHERE s.attrelid = a.attrelid \
            AND s.attname = 'martlet_id') THEN a.attname = 'martlet_id' \
            ELSE EXISTS (SELECT FROM pg_index WHERE indrelid = a.attrelid AND indisprimary \
            AND a.attnum = ANY (indkey)) END, \
            coalesce((SELECT max(confrelid::bigint) FROM pg_constraint WHERE conrelid = a.attrelid \
            AND contype = 'f' AND conkey = ARRAY[a.attnum]), 0), \
            coalesce((SELECT string_agg(enumlabel, ',' ORDER BY enumsortorder) FROM pg_enum \
            WHERE enumtypid = a.atttypid), ''), a.atthasdef OR a.attidentity <> '' \
            FROM pg_attribute AS a \
            WHERE a.attrelid = $1::bigint::oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
            """, [.integer(Int64(oid))])
        return try (0..<rows.count).map { row in
            let target = try rows.integer(row, 5)
            return Column(
                name: try rows.text(row, 0), type: try rows.text(row, 1),
                isRequired: try rows.boolean(row, 2), isComputed: try rows.boolean(row, 3),
                isKey: try rows.boolean(row, 4), target: target == 0 ? nil : UInt32(target),
                labels: try rows.text(row, 6).split(separator: ",").map(String.init),
                hasDefault: try rows.boolean(row, 7))
        }
    }
}
