/// The statements that lead from the present objects of a database to the wanted ones.
struct MigrationSteps {
    struct Step {
        /// The object that the statement adds, for an error's sentence.
        let what: String
        let sql: String
    }

    private(set) var list: [Step] = []

    /// Computes the statements.
    /// - Throws: `SchemaError` if the wanted objects differ in more than additions.
    init(from present: [SchemaObject], to wanted: [SchemaObject]) throws(SchemaError) {
        // The names are compared by bytes, as SQLite does. For Swift, names are equal if only the
        // composition of letters differs.
        let presentByName = Dictionary(
            uniqueKeysWithValues: present.map { (Self.bytes($0.name), $0) })
        let wantedNames = Set(wanted.map { Self.bytes($0.name) })
        // A virtual table, such as a full-text index, holds no records, so the schema need not name
        // it.
        for object in present where object.kind == .table {
            guard !wantedNames.contains(Self.bytes(object.name)) else { continue }
            throw SchemaError(
                """
                table “\(object.name)” is in the database but not in the schema; add it to the \
                schema again (tables are never dropped by a migration)
                """)
        }
        let names = Set(
            wanted.filter { $0.kind == .table }.flatMap { TableDeclaration($0.sql).columns }
                .map { SQLName.folded($0.name) })
        var additions: [Step] = []
        var columns: [Step] = []
        for object in wanted {
            guard let old = presentByName[Self.bytes(object.name)] else {
                additions.append(
                    Step(what: "\(object.kind.word) “\(object.name)”", sql: object.sql))
                continue
            }
            if object.kind == .table, old.kind == .table {
                columns += try Self.newColumns(of: object, since: old, names)
            } else if !Self.same(old, object, names) {
                throw SchemaError(
                    """
                    \(object.kind.word) “\(object.name)” is declared differently in the database; \
                    give the new one another name, or declare it as it was
                    """)
            }
        }
        // Views, triggers and indexes may name new columns, and columns may name new tables.
        let tables = additions.filter { $0.what.contains("table") }
        list = tables + columns + additions.filter { !$0.what.contains("table") }
    }

    private static func bytes(_ name: String) -> [UInt8] { Array(SQLName.folded(name).utf8) }

    private static func same(
        _ left: SchemaObject, _ right: SchemaObject, _ columns: Set<String>
    ) -> Bool {
        func tokens(_ object: SchemaObject) -> [SQLToken] {
            let tokens = SQLToken.withPlainTables(SQLToken.tokens(of: Array(object.sql.utf8)))
            return SQLToken.withPlainColumns(tokens, columns)
        }
        return left.kind == right.kind && tokens(left) == tokens(right)
    }

    /// Returns the statements that add the new columns of a table.
    /// - Parameter names: The folded names of all wanted columns.
    private static func newColumns(
        of wanted: SchemaObject, since present: SchemaObject, _ names: Set<String>
    ) throws(SchemaError) -> [Step] {
        func plain(_ tokens: [SQLToken]) -> [SQLToken] {
            SQLToken.withPlainColumns(tokens, names)
        }
        let new = TableDeclaration(wanted.sql)
        let old = TableDeclaration(present.sql)
        for column in old.columns {
            guard let kept = new.column(column.name) else {
                throw SchemaError(
                    """
                    table “\(present.name)” has the column “\(column.name)”, which the schema no \
                    longer has; add it to the schema again (columns are never dropped by a \
                    migration)
                    """)
            }
            guard plain(kept.tokens) == plain(column.tokens), kept.name == column.name else {
                throw SchemaError(
                    """
                    in table “\(present.name)”, column “\(column.name)” is declared differently in \
                    the database; declare it as it was, or add a column of another name
                    """)
            }
        }
        let isSame = Set(new.constraints.map(plain)) == Set(old.constraints.map(plain))
        guard isSame, new.options == old.options else {
            throw SchemaError(
                """
                table “\(present.name)” has other constraints or options than in the database; \
                declare them as they were
                """)
        }
        var steps: [Step] = []
        for column in new.columns where old.column(column.name) == nil {
            if column.contains("not", "null"), !column.contains("default"),
                !column.contains("generated"), !column.contains("as")
            {
                throw SchemaError(
                    """
                    in table “\(present.name)”, the new column “\(column.name)” is NOT NULL \
                    without a DEFAULT; give it one, or allow NULL
                    """)
            }
            steps.append(
                Step(
                    what: "in table “\(present.name)”, column “\(column.name)”",
                    sql: "ALTER TABLE \(SQLName.quoted(present.name)) ADD COLUMN \(column.text)"))
        }
        return steps
    }
}
