internal import MartletModel
internal import SQLiteKit

/// NEW, in the body of a BEFORE trigger, with the values that SQLite stores afterwards.
///
/// A REPLACE puts the default of a NOT NULL column in place of NULL, and computes the generated
/// columns once more. NEW still has the NULL, and the generated values that follow from it.
struct NewRow {
    private let table: String
    private let columns: [String]
    private let defaults: RequiredDefaults
    /// The expressions of generated columns, by the columns' folded names, if any column has such a
    /// default.
    private var computed: [String: String] = [:]

    init(of type: EntityType, _ connection: Connection) throws(SQLiteError) {
        table = type.name
        columns = [type.key] + type.attributes.map(\.name)
        defaults = try RequiredDefaults(of: type, connection)
        let generated = type.attributes.filter(\.isGenerated).map(\.name)
        guard !defaults.columns.isEmpty, !generated.isEmpty else { return }
        let find = try connection.statement(
            "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?1")
        find.bind(1, text: table)
        let declared = try find.rows { (row) throws(SQLiteError) in row.text(0) }.first
        let expressions = declared.flatMap { CreateStatement($0) }?.computed ?? [:]
        for name in generated.map(SQLName.folded) {
            // If the expression is not found, it counts as one that reads all columns, including
            // itself.
            computed[name] = expressions[name] ?? SQLName.list(columns)
        }
    }

    /// Returns SQL for the value of a stored column.
    func value(of column: String) -> String {
        let new = "NEW.\(SQLName.quoted(column))"
        return defaults.known[SQLName.folded(column)].map { "ifnull(\(new), \($0))" } ?? new
    }

    /// Returns SQL for the value of a generated column.
    /// - Parameter term: The column as an index has it.
    func value(ofComputed column: String, as term: String) -> String {
        guard let expression = computed[SQLName.folded(column)],
            !reads(expression).columns.isDisjoint(with: defaults.columns)
        else { return value(ofExpression: term) }
        // The plus removes the expression's affinity, so the column's own counts.
        return "+" + value(ofExpression: "(\(expression))")
    }

    /// Returns SQL for the value of an expression. It evaluates the expression as it was written,
    /// over one row that has the table's name and columns.
    ///
    /// The row follows an empty selection from the table itself, which gives the columns their
    /// affinities and collations, because NEW's columns have no affinity. The row lists all
    /// columns, because SQLite computes a generated column of NEW only from columns that the
    /// trigger uses.
    ///
    /// The row's columns have explicit names, which are the present names of the columns. If a
    /// program renames a column, SQLite renames it in the trigger, but not in an expression over a
    /// row of a subquery. There SQLite would take an unknown name in double quotes for a text.
    func value(ofExpression expression: String) -> String {
        let named = Self.names(in: expression)
        let replaced = columns.filter {
            let name = SQLName.folded($0)
            return named.contains(name) && defaults.known[name] != nil
        }.map { "NEW.\(SQLName.quoted($0))" }
        let own = columns.map(SQLName.quoted).map { "\($0) AS \($0)" }.joined(separator: ", ")
        let none =
            "SELECT \(own) FROM \(SQLName.quoted(table)) AS martlet_none WHERE 0"
        let new = columns.map { "NEW.\(SQLName.quoted($0))" }.joined(separator: ", ")
        var rows = "\(none) UNION ALL SELECT \(new)"
        if !replaced.isEmpty {
            let stored = columns.map { value(of: $0) }.joined(separator: ", ")
            rows += " WHERE \(replaced.map { "\($0) IS NOT NULL" }.joined(separator: " AND "))"
            rows += " UNION ALL SELECT \(stored)"
            rows += " WHERE \(replaced.map { "\($0) IS NULL" }.joined(separator: " OR "))"
        }
        return "(SELECT \(expression) FROM (\(rows)) AS \(SQLName.quoted(table)))"
    }

    /// Returns the columns that an expression reads and for which its value is unknown if NEW has
    /// NULL: their default differs each time, or the expression reads them through a generated
    /// column.
    func unforeseen(in expression: String) -> Set<String> {
        let (read, isDirect) = reads(expression)
        return Set(
            columns.filter { column in
                let name = SQLName.folded(column)
                return read.contains(name) && defaults.columns.contains(name)
                    && (!isDirect || defaults.known[name] == nil)
            })
    }

    /// Returns the same for the expression of a generated column.
    func unforeseen(inComputed column: String) -> Set<String> {
        computed[SQLName.folded(column)].map { unforeseen(in: $0) } ?? []
    }

    /// Returns the columns that an expression reads, directly or through generated columns.
    private func reads(_ expression: String) -> (columns: Set<String>, isDirect: Bool) {
        var columns: Set<String> = []
        var isDirect = true
        var open = Self.names(in: expression)
        while let name = open.popFirst() {
            guard columns.insert(name).inserted, let next = computed[name] else { continue }
            isDirect = false
            open.formUnion(Self.names(in: next))
        }
        return (columns, isDirect)
    }

    /// Returns all tokens that may be names, folded.
    private static func names(in expression: String) -> Set<String> {
        Set(
            SQLToken.tokens(of: Array(expression.utf8)).compactMap(\.identifier)
                .map { SQLName.folded($0) })
    }
}

/// The defaults of NOT NULL columns, which a REPLACE puts in place of NULL.
private struct RequiredDefaults {
    /// The folded names of the columns that have one.
    private(set) var columns: Set<String> = []
    /// SQL for the defaults as the columns store them, by folded names. It has only defaults that
    /// are the same each time.
    private(set) var known: [String: String] = [:]

    init(of type: EntityType, _ connection: Connection) throws(SQLiteError) {
        let mayHave = type.attributes.contains {
            $0.isRequired && $0.hasDefault && !$0.isGenerated
        }
        guard mayHave || type.keyKind == .text else { return }
        let find = try connection.statement(
            """
            SELECT listed.name, listed.type, listed.dflt_value, \
            (SELECT strict FROM pragma_table_list(?1) WHERE schema = 'main') \
            FROM pragma_table_xinfo(?1, 'main') AS listed \
            WHERE listed."notnull" AND listed.dflt_value IS NOT NULL AND listed.hidden = 0
            """)
        find.bind(1, text: type.name)
        let declared = try find.rows { (row) throws(SQLiteError) in
            (name: row.text(0), type: row.text(1), sql: row.text(2), isStrict: row.integer(3) != 0)
        }
        for column in declared {
            let name = SQLName.folded(column.name)
            columns.insert(name)
            known[name] = try Self.stored(column.sql, column.type, isStrict: column.isStrict)
        }
    }

    /// Returns SQL for a default as the column stores it; nil if it differs each time.
    private static func stored(
        _ sql: String, _ type: String, isStrict: Bool
    ) throws(SQLiteError) -> String? {
        let tokens = SQLToken.tokens(of: Array(sql.utf8))
        let isAlone = tokens.count == 1
        // SQLite reads the clock once in a statement.
        if isAlone, case .word(let word) = tokens[0].kind,
            ["current_time", "current_date", "current_timestamp"].contains(word)
        {
            return word
        }
        let scratch = try Connection(path: ":memory:")
        // A name alone is a text. SQLite accepts only expressions that are the same each time in a
        // generated column.
        let (standard, again) = isAlone ? (sql, "NULL") : ("(\(sql)\n)", "(\(sql)\n)")
        do {
            try scratch.execute(
                """
                CREATE TABLE one(k INTEGER PRIMARY KEY, v \(type) DEFAULT \(standard), again ANY AS (\(again)))
                \(isStrict ? "STRICT" : ""); INSERT INTO one(k) VALUES (1)
                """)
            let read = try scratch.prepare(
                "SELECT quote(v), typeof(v) = 'text' AND instr(v, char(0)), again FROM one")
            guard try read.step(), read.integer(1) == 0 else { return nil }
            // SQLite writes an infinity as a word that it does not read.
            return ["Inf": "9e999", "-Inf": "-9e999"][read.text(0)] ?? read.text(0)
        } catch {
            guard error.isStatementError || error.isConstraint else { throw error }
            return nil
        }
    }
}
