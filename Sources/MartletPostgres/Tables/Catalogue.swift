import PostgresKit

/// Tables as `pg_catalog` describes them, without interpretation.
struct Catalogue {
    /// The tables in the requested order. Those that do not exist are missing.
    private(set) var tables: [CatalogueTable] = []
    private(set) var types: [UInt32: CatalogueType] = [:]

    /// Reads tables by their oids.
    static func read(
        _ relations: [UInt32], on connection: PostgresConnection
    ) throws(PostgresError) -> Catalogue {
        let oids = PostgresValue.array(PostgresArray(relations.map { .integer(Int64($0)) }))
        var found: [UInt32: CatalogueTable] = [:]
        let rows = try connection.query(tableQuery, [oids])
        for row in 0..<rows.count {
            let table = try CatalogueTable(rows, row)
            found[table.oid] = table
        }
        var types: Set<UInt32> = []
        let columns = try connection.query(columnQuery, [oids])
        for row in 0..<columns.count {
            let column = try CatalogueColumn(columns, row)
            types.insert(column.type)
            found[UInt32(try columns.integer(row, 0))]?.columns.append(column)
        }
        let keys = try connection.query(foreignKeyQuery, [oids])
        for row in 0..<keys.count {
            found[UInt32(try keys.integer(row, 0))]?.foreignKeys.append(
                try CatalogueForeignKey(keys, row))
        }
        let indexes = try connection.query(indexQuery, [oids])
        for row in 0..<indexes.count {
            found[UInt32(try indexes.integer(row, 0))]?.indexes.append(
                try CatalogueIndex(indexes, row))
        }
        var catalogue = Catalogue()
        catalogue.tables = relations.compactMap { found[$0] }
        let numbers = types.sorted().map { PostgresValue.integer(Int64($0)) }
        let answer = try connection.query(typeQuery, [.array(PostgresArray(numbers))])
        for row in 0..<answer.count {
            let type = try CatalogueType(answer, row)
            catalogue.types[type.oid] = type
        }
        return catalogue
    }

    /// Runs `body` in a transaction in which PostgreSQL writes names outside `pg_catalog` with
    /// their schemas, so that they mean the same under any search path.
    static func unambiguous<Answer>(
        on connection: PostgresConnection, _ body: () throws -> Answer
    ) throws -> Answer {
        guard connection.isInTransaction else {
            return try connection.transaction {
                try connection.execute("SET LOCAL search_path = ''")
                return try body()
            }
        }
        let rows = try connection.query("SELECT pg_catalog.current_setting('search_path')")
        let path = try rows.text(0, 0)
        try connection.execute("SET LOCAL search_path = ''")
        let answer = try body()
        _ = try connection.query(
            "SELECT pg_catalog.set_config('search_path', $1, true)", [.text(path)])
        return answer
    }

    /// Runs `body` in a transaction that cannot write.
    static func readOnly<Answer>(
        on connection: PostgresConnection, _ body: () throws -> Answer
    ) throws -> Answer {
        try connection.transaction {
            try connection.execute("SET TRANSACTION READ ONLY")
            return try body()
        }
    }

    /// Returns SQL whose value is the type on which a domain is based, or else the type itself.
    /// - Parameter type: SQL for the oid of a type.
    static func base(of type: String) -> String {
        """
        (SELECT CASE WHEN o.typtype <> 'd' THEN o.oid ELSE (WITH RECURSIVE b (oid, base) AS (\
        SELECT o.oid, o.typbasetype UNION ALL SELECT t.oid, t.typbasetype FROM b \
        JOIN pg_catalog.pg_type AS t ON t.oid = b.base) SELECT b.oid FROM b WHERE b.base = 0) END \
        FROM pg_catalog.pg_type AS o WHERE o.oid = \(type))
        """
    }

    /// Returns SQL whose value is whether rows of the relation `c` of `pg_class` may change apart
    /// from statements. That is so if it has rules, or triggers other than Martlet's, or if actions
    /// of foreign keys lead from it to a table outside `members` that has these, or through such a
    /// table back to a member.
    /// - Parameter members: SQL for the array of the synchronised relations.
    static func hasTriggers(among members: String) -> String {
        func steps(_ from: String) -> String {
            """
            SELECT a.tgconstrrelid FROM \(from) JOIN pg_catalog.pg_trigger a
                ON a.tgrelid = here.relation AND \(TriggerMarks.acts("a"))
            """
        }
        return """
            (\(hasOwnTriggers("c.oid")) OR EXISTS (WITH RECURSIVE here (relation) AS (
                \(steps("(SELECT c.oid) AS here (relation)"))
                WHERE a.tgconstrrelid <> ALL (\(members))
                UNION \(steps("here")) WHERE here.relation <> ALL (\(members)))
                SELECT FROM here WHERE here.relation = ANY (\(members))
                OR \(hasOwnTriggers("here.relation"))))
            """
    }

    private static func hasOwnTriggers(_ relation: String) -> String {
        """
        (EXISTS (SELECT FROM pg_catalog.pg_rewrite r WHERE r.ev_class = \(relation))
            OR EXISTS (SELECT FROM pg_catalog.pg_trigger g
                JOIN pg_catalog.pg_proc p ON p.oid = g.tgfoid
                JOIN pg_catalog.pg_namespace f ON f.oid = p.pronamespace
                WHERE g.tgrelid = \(relation) AND NOT g.tgisinternal AND g.tgenabled <> 'D'
                AND f.nspname <> '\(MartletTables.schema)'))
        """
    }

    private static let tableQuery = """
        SELECT c.oid::bigint, n.nspname::text, c.relname::text, c.relkind::text,
            c.relpersistence::text, c.relispartition, c.relrowsecurity,
            pg_catalog.pg_get_userbyid(c.relowner)::text,
            pg_catalog.pg_has_role(c.relowner, 'USAGE'),
            EXISTS (SELECT FROM pg_catalog.pg_inherits i
                WHERE i.inhparent = c.oid OR i.inhrelid = c.oid),
            \(hasTriggers(among: "$1::oid[]")), pg_catalog.row_security_active(c.oid),
            current_user::text
        FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE c.oid = ANY ($1::oid[])
        """

    private static let columnQuery = """
        SELECT a.attrelid::bigint, a.attnum::bigint, a.attname::text, a.atttypid::bigint,
            a.atttypmod::bigint, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull,
            a.attidentity::text, a.attgenerated::text,
            pg_catalog.pg_get_expr(d.adbin, d.adrelid), coalesce(k.collisdeterministic, true),
            (SELECT s.oid::pg_catalog.regclass::text FROM pg_catalog.pg_depend p
                JOIN pg_catalog.pg_class s ON s.oid = p.objid AND s.relkind = 'S'
                WHERE p.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
                AND p.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
                AND p.refobjid = a.attrelid AND p.refobjsubid = a.attnum AND p.deptype = 'i')
        FROM pg_catalog.pg_attribute a
        LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
        LEFT JOIN pg_catalog.pg_collation k ON k.oid = a.attcollation
        WHERE a.attrelid = ANY ($1::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
        ORDER BY a.attrelid, a.attnum
        """

    private static let foreignKeyQuery = """
        SELECT conrelid::bigint, conname::text, conkey::bigint[], confrelid::bigint,
            confkey::bigint[], confdeltype::text, confupdtype::text, condeferrable, convalidated
        FROM pg_catalog.pg_constraint
        WHERE conrelid = ANY ($1::oid[]) AND contype = 'f' ORDER BY conrelid, conname
        """

    // The column for NULLS NOT DISTINCT exists from version 15 on.
    private static let indexQuery = """
        SELECT i.indrelid::bigint, i.indisprimary,
            (i.indkey::smallint[])[0:i.indnkeyatts - 1]::bigint[], i.indpred IS NOT NULL,
            coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false)
        FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
        WHERE i.indrelid = ANY ($1::oid[]) AND i.indisunique AND i.indisvalid
        ORDER BY i.indrelid, c.relname
        """

    private static let typeQuery = """
        WITH RECURSIVE found AS (
            SELECT t.oid, t.typname, t.typtype, t.typbasetype, t.typtypmod, t.typelem,
                t.typcategory, t.typnotnull, t.typdefault, n.nspname
            FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
            WHERE t.oid = ANY ($1::oid[])
            UNION
            SELECT t.oid, t.typname, t.typtype, t.typbasetype, t.typtypmod, t.typelem,
                t.typcategory, t.typnotnull, t.typdefault, n.nspname
            FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
            JOIN found f ON t.oid <> 0 AND (t.oid = f.typbasetype OR t.oid = f.typelem)
        )
        SELECT oid::bigint, nspname::text, typname::text, typtype::text, typbasetype::bigint,
            typtypmod::bigint, CASE WHEN typcategory = 'A' THEN typelem::bigint ELSE 0 END,
            typnotnull, typdefault,
            ARRAY(SELECT e.enumlabel::text FROM pg_catalog.pg_enum e
                WHERE e.enumtypid = found.oid ORDER BY e.enumsortorder)
        FROM found
        """
}

/// A table, view or other relation.
struct CatalogueTable {
    let oid: UInt32
    let schema: String
    let name: String
    /// `pg_class.relkind`: r for an ordinary table.
    let kind: String
    /// `pg_class.relpersistence`: p for a table that survives a crash.
    let persistence: String
    let isPartition: Bool
    let hasRowSecurity: Bool
    /// The present role, if row-level security hides rows of the table from it.
    let restrictedRole: String?
    let owner: String
    /// Whether the role may act as the owner.
    let isOwned: Bool
    /// Whether another table inherits from it, or it inherits from another.
    let isInherited: Bool
    /// Whether the table has rules, or triggers other than Martlet's, or leads to such outside the
    /// synchronised tables.
    let hasTriggers: Bool
    var columns: [CatalogueColumn] = []
    var foreignKeys: [CatalogueForeignKey] = []
    /// The unique indexes.
    var indexes: [CatalogueIndex] = []

    init(_ rows: PostgresRows, _ row: Int) throws(PostgresError) {
        oid = UInt32(try rows.integer(row, 0))
        schema = try rows.text(row, 1)
        name = try rows.text(row, 2)
        kind = try rows.text(row, 3)
        persistence = try rows.text(row, 4)
        isPartition = try rows.boolean(row, 5)
        hasRowSecurity = try rows.boolean(row, 6)
        owner = try rows.text(row, 7)
        isOwned = try rows.boolean(row, 8)
        isInherited = try rows.boolean(row, 9)
        hasTriggers = try rows.boolean(row, 10)
        restrictedRole = try rows.boolean(row, 11) ? rows.text(row, 12) : nil
    }

    /// The table as SQL names it.
    var sqlName: String {
        PostgresConnection.quoted(schema) + "." + PostgresConnection.quoted(name)
    }

    /// The problem if row-level security hides rows from the present role; nil if it does not.
    var restriction: AdoptionError.Problem? {
        guard let restrictedRole else { return nil }
        return AdoptionError.Problem(
            """
            table “\(name)” has row-level security, which the role “\(restrictedRole)” does not \
            bypass: a server would take rows that it cannot see for deleted ones
            """,
            """
            as a superuser, run ALTER ROLE \(PostgresConnection.quoted(restrictedRole)) BYPASSRLS, \
            or connect as the table's owner without FORCE ROW LEVEL SECURITY
            """)
    }

    /// The columns of the primary key; empty if there is none.
    var primaryKey: [Int] { indexes.first { $0.isPrimary }?.columns ?? [] }

    /// The column that is a record's id: the primary key if it is one column, else the column that
    /// adoption added.
    var keyColumn: CatalogueColumn? {
        if primaryKey.count == 1, let number = primaryKey.first { return column(number) }
        return columns.first { column in
            column.name == MartletTables.surrogate
                && indexes.contains { $0.columns == [column.number] && !$0.isPartial }
        }
    }

    func column(_ number: Int) -> CatalogueColumn? {
        columns.first { $0.number == number }
    }
}

/// A column.
struct CatalogueColumn {
    /// `pg_attribute.attnum`, which renaming does not change.
    let number: Int
    let name: String
    let type: UInt32
    let modifier: Int
    /// The type as SQL writes it.
    let declaration: String
    let isRequired: Bool
    /// `pg_attribute.attidentity`: a for GENERATED ALWAYS AS IDENTITY, d for BY DEFAULT, else
    /// empty.
    let identity: String
    let isGenerated: Bool
    /// The default, or the expression that computes the column, as SQL.
    let expression: String?
    /// Whether equal texts have equal bytes.
    let isDeterministic: Bool
    /// The sequence of an identity column, as SQL names it.
    let sequence: String?

    init(_ rows: PostgresRows, _ row: Int) throws(PostgresError) {
        number = Int(try rows.integer(row, 1))
        name = try rows.text(row, 2)
        type = UInt32(try rows.integer(row, 3))
        modifier = Int(try rows.integer(row, 4))
        declaration = try rows.text(row, 5)
        isRequired = try rows.boolean(row, 6)
        identity = try rows.text(row, 7)
        isGenerated = try !rows.text(row, 8).isEmpty
        expression = rows.isNull(row, 9) ? nil : try rows.text(row, 9)
        isDeterministic = try rows.boolean(row, 10)
        sequence = rows.isNull(row, 11) ? nil : try rows.text(row, 11)
    }
}

/// A foreign key.
struct CatalogueForeignKey {
    let name: String
    let columns: [Int]
    let target: UInt32
    let targetColumns: [Int]
    /// The action: a for no action, r for restrict, c for cascade, n for set null, d for set
    /// default.
    let onDelete: String
    let onUpdate: String
    let isDeferrable: Bool
    /// Whether all rows satisfy it.
    let isValid: Bool

    init(_ rows: PostgresRows, _ row: Int) throws(PostgresError) {
        name = try rows.text(row, 1)
        columns = try rows.integers(row, 2)
        target = UInt32(try rows.integer(row, 3))
        targetColumns = try rows.integers(row, 4)
        onDelete = try rows.text(row, 5)
        onUpdate = try rows.text(row, 6)
        isDeferrable = try rows.boolean(row, 7)
        isValid = try rows.boolean(row, 8)
    }

    /// Whether the foreign key has actions that change rows.
    var acts: Bool { !["a", "r"].contains(onDelete) || !["a", "r"].contains(onUpdate) }
}

/// A unique index.
struct CatalogueIndex {
    let isPrimary: Bool
    /// The numbers of the columns; 0 for an expression.
    let columns: [Int]
    let isPartial: Bool
    /// Whether the index treats nulls as equal.
    let joinsNulls: Bool

    init(_ rows: PostgresRows, _ row: Int) throws(PostgresError) {
        isPrimary = try rows.boolean(row, 1)
        columns = try rows.integers(row, 2)
        isPartial = try rows.boolean(row, 3)
        joinsNulls = try rows.boolean(row, 4)
    }
}

/// A type of the database.
struct CatalogueType {
    let oid: UInt32
    let schema: String
    let name: String
    /// `pg_type.typtype`: b for a base type, d for a domain, e for an enumeration.
    let kind: String
    /// The type that a domain is based on.
    let base: UInt32
    let modifier: Int
    /// The type of an array's elements; 0 for other types.
    let element: UInt32
    let isRequired: Bool
    let standard: String?
    /// The values of an enumeration, in order.
    let labels: [String]

    init(_ rows: PostgresRows, _ row: Int) throws(PostgresError) {
        oid = UInt32(try rows.integer(row, 0))
        schema = try rows.text(row, 1)
        name = try rows.text(row, 2)
        kind = try rows.text(row, 3)
        base = UInt32(try rows.integer(row, 4))
        modifier = Int(try rows.integer(row, 5))
        element = UInt32(try rows.integer(row, 6))
        isRequired = try rows.boolean(row, 7)
        standard = rows.isNull(row, 8) ? nil : try rows.text(row, 8)
        labels = try rows.elements(row, 9).compactMap(\.text)
    }
}

extension PostgresRows {
    /// Returns an array's elements; none for a null.
    fileprivate func elements(_ row: Int, _ column: Int) throws(PostgresError) -> [PostgresValue] {
        guard case .array(let array) = try value(row, column) else { return [] }
        return array.elements
    }

    /// Returns the integers of an array.
    fileprivate func integers(_ row: Int, _ column: Int) throws(PostgresError) -> [Int] {
        try elements(row, column).map { element in
            if case .integer(let number) = element { Int(number) } else { 0 }
        }
    }
}
