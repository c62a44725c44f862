import PostgresKit

/// The state of the synchronised tables as one number. It changes if tables, columns, their types
/// or keys were added, removed or changed, if a table got its first trigger of the user or lost the
/// last one, or if the slot sends other changes than before.
enum TableState {
    private static let sql = """
        SELECT pg_catalog.hashtextextended(pg_catalog.concat_ws('/', \
        (SELECT tables FROM _martlet.dataset WHERE number = 1), \
        (SELECT string_agg(concat_ws(',', t.number, c.oid, c.relnamespace, c.relname, c.relrowsecurity, c.relforcerowsecurity, \
        pg_catalog.row_security_active(c.oid), c.relreplident, \
        (SELECT i.indexrelid FROM pg_catalog.pg_index AS i WHERE i.indrelid = c.oid AND i.indisreplident), \
        (SELECT count(*) FROM pg_catalog.pg_inherits AS i \
        WHERE i.inhparent = c.oid OR i.inhrelid = c.oid), \
        \(Catalogue.hasTriggers(among: "ARRAY(SELECT relation::oid FROM _martlet.types)"))), ' ' \
        ORDER BY t.number) FROM _martlet.types AS t \
        LEFT JOIN pg_catalog.pg_class AS c ON c.oid = t.relation::oid), \
        (SELECT string_agg(concat_ws(',', p.oid, p.puballtables, p.pubinsert, p.pubupdate, p.pubdelete, \
        p.pubtruncate, r.oid), ' ' ORDER BY p.oid, r.oid) FROM _martlet.capture AS k \
        JOIN pg_catalog.pg_publication AS p ON p.pubname = k.publication \
        LEFT JOIN pg_catalog.pg_publication_rel AS r ON r.prpubid = p.oid), \
        (SELECT string_agg(concat_ws(',', a.attrelid, a.attnum, a.attname, a.atttypid, a.atttypmod, \
        a.attnotnull, a.attgenerated, a.attidentity, a.xmin, (SELECT string_agg(concat(e.oid, e.enumlabel), \
        ',' ORDER BY e.oid) FROM pg_catalog.pg_enum AS e \
        WHERE e.enumtypid = \(Catalogue.base(of: "a.atttypid")))), ' ' \
        ORDER BY a.attrelid, a.attnum) \
        FROM _martlet.types AS t JOIN pg_catalog.pg_attribute AS a ON a.attrelid = t.relation::oid \
        WHERE a.attnum > 0 AND NOT a.attisdropped), \
        (SELECT string_agg(concat_ws(',', k.oid, k.contype, k.conkey::text, k.confrelid, \
        k.confkey::text, k.confdeltype, k.condeferrable), ' ' ORDER BY k.oid) \
        FROM _martlet.types AS t JOIN pg_catalog.pg_constraint AS k ON k.conrelid = t.relation::oid)), \
        0)
        """

    static func read(_ connection: PostgresConnection) throws(PostgresError) -> Int64 {
        try connection.query(sql).integer(0, 0)
    }
}
