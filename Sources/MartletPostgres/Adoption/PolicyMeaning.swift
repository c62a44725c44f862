import PostgresKit

/// Finds what policies mean otherwise for devices, although their text is the same: values that
/// devices keep as texts, and orders of texts that depend on a collation.
///
/// It reads the operators, casts and functions that PostgreSQL has chosen, from the stored trees.
enum PolicyMeaning {
    struct Difference {
        let table: UInt32
        /// The policy, quoted as SQL needs it.
        let policy: String
        /// USING or WITH CHECK.
        let clause: String
        let words: String
        let remedy: String
    }

    /// Returns the differences of all policies of tables with row-level security.
    static func differences(
        of tables: [UInt32], on connection: PostgresConnection
    ) throws(PostgresError) -> [Difference] {
        let oids = PostgresValue.array(PostgresArray(tables.map { .integer(Int64($0)) }))
        let rows = try connection.query(query, [oids])
        var found: [Difference] = []
        for row in 0..<rows.count {
            let type = try rows.text(row, 4)
            let (words, remedy) =
                switch try rows.text(row, 3) {
                case "operator":
                    ("the operator “\(type)” is not PostgreSQL's own", "write it otherwise")
                case "order":
                    (
                        "it depends on the order of texts in the collation “\(type)”, and devices "
                            + "and servers compare texts by their bytes",
                        "write COLLATE \"C\" behind the texts if that order is right"
                    )
                case "function":
                    (
                        "it calls \(type), which is not the function that Martlet knows by this name",
                        "give the function the definition that docs/policies-guide.md has, or call "
                            + "pg_catalog.current_setting"
                    )
                case "arithmetic":
                    (
                        "it computes a value of the type \(type), which PostgreSQL refuses beyond the "
                            + "type's range, and Martlet computes with the range of bigint",
                        "write ::bigint behind one of the values"
                    )
                case "equal":
                    ComparisonFault.equal(in: "“\(type)”")
                default:
                    ComparisonFault.compared(type)
                }
            found.append(
                Difference(
                    table: UInt32(try rows.integer(row, 0)), policy: try rows.text(row, 1),
                    clause: try rows.text(row, 2), words: words, remedy: remedy))
        }
        return found
    }

    /// SQL that is true for the types whose values compare on devices as in PostgreSQL: boolean,
    /// bigint, smallint, integer, text, double precision, date, varchar, numeric, uuid, and none.
    private static func isPlain(_ type: String) -> String {
        "\(type) IN (16, 20, 21, 23, 25, 701, 1082, 1043, 1700, 2950, 0)"
    }

    /// The definitions of functions in a database that mean what they mean in a rules file, in small
    /// letters. Spaces do not count.
    private static let functions: [(name: String, body: String)] = [
        ("martlet_user", "select nullif(current_setting('martlet.user', true), '')"),
        (
            "martlet_role",
            "select name = any (string_to_array(coalesce(current_setting('martlet.roles', true), ''), ','))"
        ),
        ("martlet_claim", "select nullif(current_setting('martlet.claim.' || name, true), '')"),
        ("martlet_today", "select (now() at time zone 'utc')::date"),
        ("martlet_today", "select current_setting('martlet.today')::date"),
    ]

    /// SQL that is true for a function which means the same in a rules file, or which no rules file may
    /// call.
    private static let isKnown: String = {
        let list = functions.map { name, body in
            "('\(name)', '\(body.replacing("'", with: "''").replacing(" ", with: ""))')"
        }
        return """
            (p.pronamespace = 'pg_catalog'::pg_catalog.regnamespace
            OR p.proname NOT LIKE 'martlet\\_%' AND p.proname NOT IN ('current_setting', 'coalesce',
                'nullif', 'like_escape') AND NOT EXISTS (SELECT FROM pg_catalog.pg_cast k
                    WHERE k.castfunc = p.oid)
            OR p.prolang = (SELECT l.oid FROM pg_catalog.pg_language l WHERE l.lanname = 'sql')
            AND p.proconfig IS NULL AND (p.proname::text, pg_catalog.regexp_replace(
                pg_catalog.lower(p.prosrc), '[[:space:];]', '', 'g')) IN (\(list.joined(separator: ", "))))
            """
    }()

    /// The types anyenum and bytea.
    private static let (anyEnumeration, binary) = (3500, 17)

    /// SQL that is true for operators of texts.
    private static let isText = "o.oprleft IN (25, 1043)"

    /// SQL that is true if a collation orders texts by their bytes.
    private static func isBytes(_ collation: String) -> String {
        """
        (\(collation) = 0 OR EXISTS (SELECT FROM pg_catalog.pg_collation k
            WHERE k.oid = \(collation) AND k.collprovider = 'c' AND k.collcollate IN ('C', 'POSIX'))
        OR \(collation) = 100 AND EXISTS (SELECT FROM pg_catalog.pg_database d
            WHERE d.datname = pg_catalog.current_database() AND d.datcollate IN ('C', 'POSIX')
            AND coalesce(to_jsonb(d) ->> 'datlocprovider', 'c') = 'c'))
        """
    }

    private static let query = """
        WITH tree AS (
            SELECT p.polrelid, p.polname, k.clause, k.tree
            FROM pg_catalog.pg_policy p JOIN pg_catalog.pg_class c ON c.oid = p.polrelid
            CROSS JOIN LATERAL (VALUES ('USING', p.polqual::text),
                ('WITH CHECK', p.polwithcheck::text)) AS k (clause, tree)
            WHERE p.polrelid = ANY ($1::oid[]) AND c.relrowsecurity AND k.tree IS NOT NULL
        ), used AS (
            SELECT t.*, m[1]::oid AS op, m[2]::oid AS coll FROM tree t CROSS JOIN LATERAL
            pg_catalog.regexp_matches(t.tree, ':opno (\\d+) [^{}]*?:inputcollid (\\d+)', 'g') AS m
        ), sorted AS (
            SELECT t.*, m[1]::oid AS op FROM tree t CROSS JOIN LATERAL
            pg_catalog.regexp_matches(t.tree, ':sortop (\\d+)', 'g') AS m WHERE m[1] <> '0'
        ), collated AS (
            SELECT t.*, m[1]::oid AS coll FROM tree t CROSS JOIN LATERAL
            pg_catalog.regexp_matches(t.tree, 'coll(?:id|Oid) (\\d+)', 'g') AS m
        ), cast_from AS (
            SELECT t.*, k.castsource AS source, k.casttarget AS target
            FROM tree t CROSS JOIN LATERAL
            pg_catalog.regexp_matches(t.tree, '\\{FUNCEXPR :funcid (\\d+)', 'g') AS m
            JOIN pg_catalog.pg_cast k ON k.castfunc = m[1]::oid
            UNION ALL
            SELECT t.*, m[1]::oid, 0 FROM tree t CROSS JOIN LATERAL
            pg_catalog.regexp_matches(t.tree, '\\{COERCEVIAIO :arg \\{VAR :varno -?\\d+ '
                || ':varattno -?\\d+ :vartype (\\d+)', 'g') AS m
            JOIN pg_catalog.pg_type y ON y.oid = m[1]::oid AND y.typtype <> 'e'
        ), called AS (
            SELECT t.*, m[1]::oid AS func FROM tree t CROSS JOIN LATERAL
            pg_catalog.regexp_matches(t.tree, '\\{FUNCEXPR :funcid (\\d+)', 'g') AS m
        ), fault AS (
            SELECT polrelid, polname, clause, 'function' AS kind,
                pg_catalog.format('the function “%s.%s”', p.pronamespace::regnamespace, p.proname) AS shown
            FROM called JOIN pg_catalog.pg_proc p ON p.oid = func WHERE NOT \(isKnown)
            UNION
            SELECT polrelid, polname, clause, 'arithmetic',
                pg_catalog.format_type(o.oprresult, NULL)
            FROM used JOIN pg_catalog.pg_operator o ON o.oid = op
            WHERE o.oprname IN ('+', '-', '*', '/') AND o.oprresult IN (21, 23)
            AND o.oprleft IN (0, 21, 23)
            UNION
            SELECT polrelid, polname, clause, 'operator', o.oprname::text
            FROM used JOIN pg_catalog.pg_operator o ON o.oid = op
            WHERE o.oprnamespace <> 'pg_catalog'::pg_catalog.regnamespace
            UNION
            SELECT polrelid, polname, clause, 'type', pg_catalog.format_type(
                CASE WHEN \(isPlain("o.oprleft")) THEN o.oprright ELSE o.oprleft END, NULL)
            FROM used JOIN pg_catalog.pg_operator o ON o.oid = op
            WHERE NOT (\(isPlain("o.oprleft")) AND \(isPlain("o.oprright")))
            AND NOT (o.oprname IN ('=', '<>') AND o.oprleft = o.oprright
                AND o.oprleft IN (\(anyEnumeration), \(binary)))
            UNION
            SELECT polrelid, polname, clause, 'order', coalesce((SELECT k.collname::text
                FROM pg_catalog.pg_collation k WHERE k.oid = coll), '?')
            FROM used JOIN pg_catalog.pg_operator o ON o.oid = op
            WHERE \(isText) AND o.oprname IN ('<', '<=', '>', '>=') AND NOT \(isBytes("coll"))
            UNION
            SELECT polrelid, polname, clause, 'equal', k.collname::text
            FROM used JOIN pg_catalog.pg_collation k ON k.oid = coll
            WHERE NOT k.collisdeterministic
            UNION
            SELECT s.polrelid, s.polname, s.clause, 'order', coalesce((SELECT k.collname::text
                FROM pg_catalog.pg_collation k WHERE k.oid = l.coll), '?')
            FROM sorted s JOIN pg_catalog.pg_operator o ON o.oid = s.op
            JOIN collated l ON l.polrelid = s.polrelid AND l.polname = s.polname
                AND l.clause = s.clause
            WHERE \(isText) AND NOT \(isBytes("l.coll"))
            UNION
            SELECT polrelid, polname, clause, 'type', pg_catalog.format_type(o.oprleft, NULL)
            FROM sorted JOIN pg_catalog.pg_operator o ON o.oid = op
            WHERE NOT \(isPlain("o.oprleft"))
            UNION
            SELECT polrelid, polname, clause, 'type', pg_catalog.format_type(
                CASE WHEN \(isPlain("source")) THEN target ELSE source END, NULL)
            FROM cast_from WHERE NOT (\(isPlain("source")) AND \(isPlain("target")))
        )
        SELECT polrelid::bigint, pg_catalog.quote_ident(polname), clause, kind, shown
        FROM fault ORDER BY polrelid, polname, clause, kind, shown
        """
}
