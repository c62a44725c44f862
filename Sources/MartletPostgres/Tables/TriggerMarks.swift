import PostgresKit

/// A mark of each table, as a number, for the code that runs when its rows are written: its
/// triggers and rules except Martlet's, the actions of foreign keys, and the same for the tables
/// that these actions lead to. If a mark has changed, rows may newly change apart from a set's
/// statements.
enum TriggerMarks {
    /// Returns SQL whose value is whether the trigger `alias` of `pg_trigger` carries out a foreign
    /// key's action. The action leads from the table that is referred to into `tgconstrrelid`.
    static func acts(_ alias: String) -> String {
        let functions = ["cascade", "setnull", "setdefault"].flatMap { action in
            ["del", "upd"].map { "'pg_catalog.\"RI_FKey_\(action)_\($0)\"'::pg_catalog.regproc" }
        }
        return "\(alias).tgfoid IN (\(functions.joined(separator: ", ")))"
    }

    private static func mark(of relation: String) -> String {
        """
        (WITH RECURSIVE reached (relation) AS (SELECT \(relation)::oid UNION \
        SELECT a.tgconstrrelid FROM reached JOIN pg_catalog.pg_trigger AS a \
        ON a.tgrelid = reached.relation WHERE \(acts("a"))) \
        SELECT coalesce(pg_catalog.hashtextextended(pg_catalog.string_agg(f.what, ' ' ORDER BY f.what), 0), 0) \
        FROM reached CROSS JOIN LATERAL (\
        SELECT pg_catalog.concat_ws(',', g.oid, g.tgenabled) FROM pg_catalog.pg_trigger AS g \
        JOIN pg_catalog.pg_proc AS p ON p.oid = g.tgfoid WHERE g.tgrelid = reached.relation \
        AND (NOT g.tgisinternal OR \(acts("g"))) \
        AND p.pronamespace <> '\(MartletTables.schema)'::pg_catalog.regnamespace UNION ALL \
        SELECT pg_catalog.concat_ws(',', r.oid, r.ev_enabled) FROM pg_catalog.pg_rewrite AS r \
        WHERE r.ev_class = reached.relation) AS f (what))
        """
    }

    /// Returns the marks of all synchronised tables, by the tables' oids.
    static func read(_ connection: PostgresConnection) throws(PostgresError) -> [UInt32: Int64] {
        let rows = try connection.query(
            """
            SELECT t.relation::oid::bigint, \(mark(of: "t.relation::oid")) FROM _martlet.types AS t
            """)
        var marks: [UInt32: Int64] = [:]
        for row in 0..<rows.count {
            marks[UInt32(try rows.integer(row, 0))] = try rows.integer(row, 1)
        }
        return marks
    }

    private static let checkSQL = """
        SELECT 1 / (NOT EXISTS (SELECT FROM unnest($1::bigint[], $2::bigint[]) AS q (relation, mark) \
        WHERE q.mark <> \(mark(of: "q.relation::oid"))))::integer
        """

    /// Returns a statement that fails if one of the tables has another mark. Until the transaction
    /// ends, the tables that it has written to are locked against new triggers.
    static func check(_ marks: [(relation: UInt32, mark: Int64)]) -> PostgresStatement {
        PostgresStatement(
            checkSQL,
            [
                PendingWrites.integers(marks.map { Int64($0.relation) }),
                PendingWrites.integers(marks.map(\.mark)),
            ])
    }
}
