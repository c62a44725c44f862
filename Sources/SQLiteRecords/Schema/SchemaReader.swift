package import MartletModel
internal import MartletProtocol
package import SQLiteKit

/// Reads the schema of a data set from the tables of a database.
package enum SchemaReader {
    /// Reads every table of `main` that is the user's. It leaves out SQLite's own and Martlet's own
    /// tables, views, virtual tables, and the tables in which virtual tables store their data.
    ///
    /// Foreign keys of several columns, or to a column that is not the target's key, are not among
    /// `references`: the database alone enforces them. Unique indexes over expressions are not
    /// among `uniques`; partial ones are.
    /// - Throws: `SchemaError` for a table that cannot be synchronised, `SQLiteError`.
    package static func read(_ connection: Connection) throws -> Schema {
        let names = try tableNames(connection)
        try checkDistinct(names, of: "tables")
        let tables = try names.map { try Table($0, connection) }
        let byName = Dictionary(uniqueKeysWithValues: tables.map { (SQLName.folded($0.name), $0) })
        return Schema(types: try tables.map { try $0.type(among: byName) })
    }

    /// Refuses names that differ for SQLite but not for Swift: SQLite compares the bytes of names,
    /// and Swift the characters.
    fileprivate static func checkDistinct(
        _ names: [String], of what: String
    ) throws(SchemaError) {
        var seen: Set<String> = []
        for name in names where !seen.insert(name).inserted {
            throw SchemaError(
                """
                \(what) have the name “\(name)” twice, with the same letters composed in two ways; \
                give one of them another name
                """)
        }
    }

    private static func tableNames(_ connection: Connection) throws(SQLiteError) -> [String] {
        let statement = try connection.statement(
            """
            SELECT object.name FROM main.sqlite_schema AS object \
            JOIN pragma_table_list AS listed \
            ON listed.schema = 'main' AND listed.name = object.name AND listed.type = 'table' \
            WHERE object.type = 'table' AND object.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
            AND object.name NOT LIKE 'martlet\\_%' ESCAPE '\\' ORDER BY object.rowid
            """)
        return try statement.rows { (row) throws(SQLiteError) in row.text(0) }
    }
}

/// A table as the pragmas describe it.
private struct Table {
    let name: String
    let columns: [Column]
    let foreignKeys: [ForeignKey]
    let uniques: [[String]]
    /// Whether the key has an index of its own, because it is not the rowid.
    let hasKeyIndex: Bool
    let hasConflictClause: Bool

    struct Column {
        let name: String
        let declaration: String
        let isRequired: Bool
        /// The default as it was written; nil if there is none.
        let standard: String?
        let keyPosition: Int64
        let isGenerated: Bool
    }

    struct ForeignKey {
        let number: Int64
        let table: String
        var columns: [String]
        /// The referenced columns; nil if the declaration names none and means the target's key.
        var targets: [String?]
        let onDelete: String
        let onUpdate: String

        /// Whether SQLite has a trigger of its own for changes of the target.
        var hasTrigger: Bool { [onDelete, onUpdate].contains { $0 != "NO ACTION" } }
    }

    init(_ name: String, _ connection: Connection) throws(SQLiteError) {
        self.name = name
        // pragma_table_xinfo: cid, name, type, notnull, dflt_value, pk, hidden; hidden is 2 or 3
        // for generated columns (https://sqlite.org/pragma.html#pragma_table_xinfo).
        let columns = try connection.statement(
            """
            SELECT name, type, "notnull", dflt_value, pk, hidden \
            FROM pragma_table_xinfo(?1, 'main') WHERE hidden <> 1 ORDER BY cid
            """)
        columns.bind(1, text: name)
        self.columns = try columns.rows { (row) throws(SQLiteError) in
            Column(
                name: row.text(0), declaration: row.text(1), isRequired: row.integer(2) != 0,
                standard: row.isNull(3) ? nil : row.text(3), keyPosition: row.integer(4),
                isGenerated: row.integer(5) != 0)
        }
        foreignKeys = try Self.foreignKeys(name, connection)
        let indexes = try connection.statement(
            """
            SELECT name, origin FROM pragma_index_list(?1, 'main') WHERE "unique" ORDER BY name
            """)
        indexes.bind(1, text: name)
        let listed = try indexes.rows { (row) throws(SQLiteError) in (row.text(0), row.text(1)) }
        hasKeyIndex = listed.contains { $0.1 == "pk" }
        var uniques: [[String]] = []
        for (index, origin) in listed where origin != "pk" {
            if let columns = try Self.columns(ofIndex: index, connection) {
                uniques.append(columns)
            }
        }
        self.uniques = uniques
        hasConflictClause = try Self.hasConflictClause(name, connection)
    }

    private static func hasConflictClause(
        _ name: String, _ connection: Connection
    ) throws(SQLiteError) -> Bool {
        let find = try connection.statement(
            "SELECT sql FROM main.sqlite_schema WHERE type = 'table' AND name = ?1")
        find.bind(1, text: name)
        let declarations = try find.rows { (row) throws(SQLiteError) in row.text(0) }
        return declarations.contains { sql in
            let kinds = SQLToken.tokens(of: Array(sql.utf8)).map(\.kind)
            return kinds.indices.dropLast(2).contains { index in
                kinds[index] == .word("on") && kinds[index + 1] == .word("conflict")
                    && kinds[index + 2] != .word("abort")
            }
        }
    }

    private static func foreignKeys(
        _ name: String, _ connection: Connection
    ) throws(SQLiteError) -> [ForeignKey] {
        // They are numbered from the last declared to the first, and read back in the order of
        // declaration.
        let statement = try connection.statement(
            """
            SELECT id, "table", "from", "to", on_delete, on_update \
            FROM pragma_foreign_key_list(?1, 'main') ORDER BY id DESC, seq
            """)
        statement.bind(1, text: name)
        var keys: [ForeignKey] = []
        _ = try statement.rows { (row) throws(SQLiteError) in
            let target = row.isNull(3) ? nil : row.text(3)
            if let last = keys.last, last.number == row.integer(0) {
                keys[keys.count - 1].columns.append(row.text(2))
                keys[keys.count - 1].targets.append(target)
            } else {
                keys.append(
                    ForeignKey(
                        number: row.integer(0), table: row.text(1), columns: [row.text(2)],
                        targets: [target], onDelete: row.text(4), onUpdate: row.text(5)))
            }
        }
        return keys
    }

    /// Returns the columns of an index; nil if one is an expression.
    private static func columns(
        ofIndex index: String, _ connection: Connection
    ) throws(SQLiteError) -> [String]? {
        let statement = try connection.statement(
            "SELECT name FROM pragma_index_info(?1, 'main') ORDER BY seqno")
        statement.bind(1, text: index)
        let names = try statement.rows { (row) throws(SQLiteError) in
            row.isNull(0) ? nil : row.text(0)
        }
        let columns = names.compactMap { $0 }
        return columns.count == names.count ? columns : nil
    }

    // MARK: - Checks

    func key() throws(SchemaError) -> (column: Column, kind: EntityType.KeyKind) {
        let keys = columns.filter { $0.keyPosition > 0 }
        guard let key = keys.first else {
            throw SchemaError(
                "table “\(name)” has no primary key; declare one column PRIMARY KEY")
        }
        guard keys.count == 1 else {
            throw SchemaError(
                """
                table “\(name)” has a primary key of \(keys.count) columns; give it a key of one \
                column and make the others UNIQUE
                """)
        }
        if SQLName.folded(key.declaration) == "integer", !hasKeyIndex { return (key, .integer) }
        if DeclaredType.isTextKey(key.declaration) { return (key, .text) }
        throw SchemaError(
            """
            table “\(name)” has the key “\(key.name)” declared \
            “\(key.declaration.isEmpty ? "(nothing)" : key.declaration)”; declare it \
            INTEGER PRIMARY KEY (in a table with rowids) or TEXT PRIMARY KEY
            """)
    }

    func type(among tables: [String: Table]) throws(SchemaError) -> EntityType {
        let (key, keyKind) = try key()
        try checkNames(key: key.name)
        let attributes = columns.filter { $0.keyPosition == 0 }.map { column in
            let kind = DeclaredType.kind(of: column.declaration)
            return Attribute(
                name: column.name, kind: kind, isRequired: column.isRequired,
                hasDefault: column.standard != nil,
                defaultValue: column.standard.flatMap { DefaultLiteral.value($0, kind) },
                isGenerated: column.isGenerated,
                keepsDigits: DeclaredType.keepsDigits(column.declaration),
                meaning: DeclaredType.meaning(of: column.declaration))
        }
        return EntityType(
            name: name, key: key.name, keyKind: keyKind, attributes: attributes,
            references: try references(key: key.name, attributes, among: tables),
            uniques: uniques.filter { !$0.contains(key.name) },
            hasConflictClause: hasConflictClause,
            keyMeaning: DeclaredType.meaning(of: key.declaration))
    }

    private func checkNames(key: String) throws(SchemaError) {
        try check(name, "table")
        try SchemaReader.checkDistinct(
            columns.map(\.name), of: "in table “\(name)”, columns")
        if ReservedWords.types.contains(name) {
            throw SchemaError(
                "table “\(name)” has the name of a word of the wire; give it another name")
        }
        if ["old", "new"].contains(SQLName.folded(name)), foreignKeys.contains(where: \.hasTrigger)
        {
            throw SchemaError(
                """
                table “\(name)” has the name of a trigger's row, and references with ON DELETE or ON UPDATE \
                actions: SQLite mixes the two up, and changes other rows or none; give it another name
                """)
        }
        for column in columns {
            if column.name == key, key == ReservedWords.surrogateKey { continue }
            try check(column.name, "in table “\(name)”, column")
            guard column.name != key else { continue }
            if ReservedWords.attributes.contains(column.name) {
                throw SchemaError(
                    """
                    in table “\(name)”, column “\(column.name)” has the name of a word of the \
                    wire; give it another name
                    """)
            }
        }
    }

    private func check(_ name: String, _ what: String) throws(SchemaError) {
        let control = name.unicodeScalars.contains {
            $0.value < 32 || (127...159).contains($0.value)
        }
        if name.isEmpty || control {
            throw SchemaError(
                """
                \(what) \(name.isEmpty ? "without a name" : "with a control character in its name")\
                ; give it a name of printable characters
                """)
        }
        if name.utf8.count > Limits.nameBytes {
            throw SchemaError(
                """
                \(what) “\(name.prefix(24))…” has a name of \(name.utf8.count) bytes; at most \
                \(Limits.nameBytes) are allowed
                """)
        }
        if SQLName.folded(name).hasPrefix(ReservedWords.prefix) {
            throw SchemaError(
                """
                \(what) “\(name)” starts with “\(ReservedWords.prefix)”, which is kept for \
                Martlet's own; give it another name
                """)
        }
    }

    private func references(
        key: String, _ attributes: [Attribute], among tables: [String: Table]
    ) throws(SchemaError) -> [Reference] {
        var references: [Reference] = []
        for foreign in foreignKeys {
            guard let target = tables[SQLName.folded(foreign.table)] else {
                throw SchemaError(
                    """
                    table “\(name)” references “\(foreign.table)”, which is not a table here; \
                    create that table or drop the reference
                    """)
            }
            let (targetKey, targetKind) = try target.key()
            let ontoKey = foreign.targets.contains { column in
                column.map { SQLName.folded($0) == SQLName.folded(targetKey.name) } ?? true
            }
            guard ontoKey else { continue }
            guard foreign.columns.count == 1, let column = foreign.columns.first else {
                throw SchemaError(
                    """
                    table “\(name)” references the key of “\(target.name)” together with other \
                    columns; reference the key alone
                    """)
            }
            let attribute = attributes.first { SQLName.folded($0.name) == SQLName.folded(column) }
            guard let attribute else {
                throw SchemaError(
                    """
                    table “\(name)” has a key that is itself a reference to “\(target.name)”; \
                    give the table a key of its own and make the reference UNIQUE
                    """)
            }
            let suits = attribute.kind == .any || attribute.kind.rawValue == targetKind.rawValue
            guard suits else {
                throw SchemaError(
                    """
                    in table “\(name)”, column “\(column)” is of kind \(attribute.kind.rawValue), \
                    but the key of “\(target.name)” which it references is \
                    \(targetKind.rawValue); declare both alike
                    """)
            }
            references.append(
                Reference(
                    attribute: attribute.name, target: target.name,
                    onDelete: Self.action(foreign.onDelete)))
        }
        return references
    }

    private static func action(_ words: String) -> Reference.Action {
        switch words {
        case "RESTRICT": .restrict
        case "CASCADE": .cascade
        case "SET NULL": .setNull
        case "SET DEFAULT": .setDefault
        default: .noAction
        }
    }
}
