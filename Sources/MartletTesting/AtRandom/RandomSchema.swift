internal import SQLiteRecords

/// Tables that are declared at random, with most of the declarations that docs/schema.md supports.
package struct RandomSchema {
    package private(set) var tables: [RandomTable]
    /// Two tables, or one, whose deletions return to the first by references; nil if there are
    /// none.
    package private(set) var circle: Circle?
    /// Whether statements write NULL to columns that must have a value.
    package let hasRare: Bool

    package struct Circle: Sendable {
        /// The index of the table in which a row may be replaced, and of the table whose rows are
        /// deleted with it.
        package let first: Int
        package let second: Int
        /// The references, and the column by whose values rows are replaced.
        package let back: String
        package let up: String
        package let unique: String
    }

    /// - Parameter rare: Whether to declare what a REPLACE meets seldom: unique indexes of columns that have their
    ///   default in place of NULL, deletions that come back to the table, and names of columns without quotes.
    package init(using random: inout SeededRandom, rare: Bool = false) {
        hasRare = rare
        var names = Self.names.shuffled(using: &random)[...]
        var tables: [RandomTable] = []
        for position in 0..<Int.random(in: 1...3, using: &random) {
            let name = names.removeFirst()
            tables.append(RandomTable(name, position: position, among: tables, using: &random))
        }
        self.tables = tables
        guard rare else { return }
        // These draw from a source of their own, so that the rest of the schema stays as it is.
        var copy = random
        var seldom = SeededRandom(seed: copy.next())
        for position in tables.indices {
            self.tables[position].indexRequired(position, using: &seldom)
        }
        if seldom.chance(35) { addCircle(using: &seldom) }
        for position in tables.indices where seldom.chance(50) {
            self.tables[position].nameColumnsPlainly()
        }
    }

    private mutating func addCircle(using random: inout SeededRandom) {
        let first = Int.random(in: tables.indices, using: &random)
        let second = Int.random(in: tables.indices, using: &random)
        guard
            let unique = tables[first].columns.filter({ $0.target == nil }).randomElement(
                using: &random)
        else { return }
        let back = random.one(of: ["SET NULL", "SET NULL", "SET DEFAULT", "CASCADE"])
        let up = random.one(of: ["CASCADE", "CASCADE", "CASCADE", "SET NULL"])
        tables[first].add(RandomColumn("back", second, tables[second], "ON DELETE \(back)"))
        tables[second].add(RandomColumn("up", first, tables[first], "ON DELETE \(up)"))
        tables[first].addIndex(
            "CREATE UNIQUE INDEX ring ON \(tables[first].quoted)(\(unique.quoted));")
        if random.chance(70) {
            tables[first].addIndex(
                "CREATE INDEX ring_back ON \(tables[first].quoted)(\(RandomTable.quoted("back")));")
        }
        circle = Circle(
            first: first, second: second, back: RandomTable.quoted("back"),
            up: RandomTable.quoted("up"), unique: unique.quoted)
    }

    package var script: String { tables.map(\.script).joined(separator: "\n") }

    private static let names = [
        "teams", "order", "Größe", "two words", "it's", "a\"b", "x[y]", "semi;colon", "--dash",
        "x.y", "new", "old", "t'\u{301}",
    ]
}

/// A table, with the properties that statements need.
package struct RandomTable {
    package let name: String
    package let key: String
    package let isText: Bool
    /// Whether the table has a rowid that statements can name.
    package let hasRowID: Bool
    package private(set) var columns: [RandomColumn]
    /// The columns and constraints of the declaration. The first column is the key.
    private var parts: [String]
    private let options: [String]
    private var indexes: [String]

    init(
        _ name: String, position: Int, among others: [RandomTable], using random: inout SeededRandom
    ) {
        self.name = name
        isText = random.chance(45)
        key =
            isText
            ? random.one(of: ["id", "code", "the key"]) : random.one(of: ["id", "ID", "no."])
        let isStrict = random.chance(15)
        var names = Self.columnNames.shuffled(using: &random)[...]
        if random.chance(1) { names.insert(contentsOf: Self.composed, at: 0) }
        var columns: [RandomColumn] = []
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            let own = (name: name, position: position, isText: isText)
            columns.append(
                RandomColumn(names.removeFirst(), own, others, isStrict: isStrict, using: &random))
        }
        self.columns = columns
        var parts = [Self.declaration(ofKey: key, isText: isText, using: &random)]
        parts += columns.map(\.declaration)
        if random.chance(20), let first = columns.first(where: { $0.kind == .text }) {
            parts.append(
                "folded TEXT AS (lower(\(first.quoted)))\(random.chance(50) ? " STORED" : "")")
        }
        var options: [String] = isStrict ? ["STRICT"] : []
        hasRowID = !isText || !random.chance(25)
        if !hasRowID { options.append("WITHOUT ROWID") }
        self.parts = parts
        self.options = options
        indexes = (0..<Int.random(in: 0...2, using: &random)).map { number in
            Self.index("u\(position)_\(number)", on: name, of: columns, using: &random)
        }
    }

    fileprivate mutating func add(_ column: RandomColumn) {
        columns.append(column)
        parts.append(column.declaration)
    }

    fileprivate mutating func addIndex(_ index: String) { indexes.append(index) }

    /// Makes the declarations name columns without quotes, if the names allow it.
    fileprivate mutating func nameColumnsPlainly() {
        let plain = ["name", "n", "naïve", "its", "rank", "NEW", "_x"]
        func named(_ declaration: String) -> String {
            plain.reduce(declaration) { $0.replacing(Self.quoted($1), with: $1) }
        }
        parts = parts.map(named)
        indexes = indexes.map(named)
    }

    /// Gives some of the columns that must have a value a unique index, and lets their default take the place of NULL.
    fileprivate mutating func indexRequired(_ position: Int, using random: inout SeededRandom) {
        for (number, column) in columns.enumerated() where column.isRequired {
            if random.chance(30), let part = parts.firstIndex(of: column.declaration) {
                parts[part] = parts[part].replacing(
                    "NOT NULL DEFAULT", with: "NOT NULL ON CONFLICT REPLACE DEFAULT")
            }
            guard random.chance(40) else { continue }
            let name = "r\(position)_\(number)"
            let other = random.one(of: columns).quoted
            var over = random.one(of: [
                column.quoted, "\(column.quoted) || '.'", "\(column.quoted), \(other)",
            ])
            if random.chance(25) {
                parts.append(
                    "made\(number) TEXT AS (\(column.quoted) || '.')\(random.chance(50) ? " STORED" : "")"
                )
                over = "made\(number)"
            }
            let condition =
                random.chance(20) ? " WHERE \(column.quoted) IS \(column.kind.standard)" : ""
            indexes.append("CREATE UNIQUE INDEX \(name) ON \(quoted)(\(over))\(condition);")
        }
    }

    package var script: String { script(with: []) }

    /// Returns the declaration with further constraints.
    package func script(with constraints: [String]) -> String {
        let lines = (parts + constraints).joined(separator: ", ")
        let table = "CREATE TABLE \(quoted)(\(lines)) \(options.joined(separator: ", "));"
        return ([table] + indexes).joined(separator: " ")
    }

    package var quoted: String { Self.quoted(name) }
    package var quotedKey: String { Self.quoted(key) }

    package static func quoted(_ name: String) -> String { SQLName.quoted(name) }

    private static let columnNames = [
        "name", "n", "group", "naïve", "with space", "quo\"te", "its", "semi;", "rank", "NEW", "_x",
        "q\"\u{301}",
    ]

    /// Two forms of one name. No device can have both.
    private static let composed = ["ö", "o\u{308}"]

    private static func declaration(
        ofKey key: String, isText: Bool, using random: inout SeededRandom
    ) -> String {
        guard isText else {
            let growth = random.chance(15) ? " AUTOINCREMENT" : ""
            return "\(quoted(key)) INTEGER PRIMARY KEY\(growth)"
        }
        let collation = random.chance(20) ? " COLLATE NOCASE" : ""
        return "\(quoted(key)) TEXT PRIMARY KEY\(collation)"
    }

    private static func index(
        _ index: String, on table: String, of columns: [RandomColumn],
        using random: inout SeededRandom
    ) -> String {
        let first = random.one(of: columns).quoted
        let second = random.one(of: columns).quoted
        let unique = random.chance(70) ? "UNIQUE " : ""
        let over = random.one(of: [
            first, first, "lower(\(first))", "\(first) COLLATE NOCASE",
            "ifnull(\(first), '-') || '.'",
            first == second ? first : "\(first), \(second) DESC",
        ])
        let condition = random.chance(25) ? " WHERE \(second) IS NOT NULL" : ""
        return "CREATE \(unique)INDEX \(index) ON \(quoted(table))(\(over))\(condition);"
    }
}

/// A column that is not the key.
package struct RandomColumn {
    package enum Kind: CaseIterable {
        case text, integer, real, boolean, untyped, blob
    }

    package let name: String
    package let kind: Kind
    package let isRequired: Bool
    /// The index of the table whose keys it holds; nil if it is no reference.
    package let target: Int?
    let declaration: String

    package var quoted: String { RandomTable.quoted(name) }

    init(
        _ name: String, _ own: (name: String, position: Int, isText: Bool), _ others: [RandomTable],
        isStrict: Bool, using random: inout SeededRandom
    ) {
        self.name = name
        var words: [String] = [RandomTable.quoted(name)]
        if random.chance(30) {
            let position = Int.random(in: 0...own.position, using: &random)
            let table =
                position < own.position
                ? (others[position].name, others[position].isText) : (own.name, own.isText)
            kind = table.1 ? .text : .integer
            target = position
            isRequired = false
            words += [table.1 ? "TEXT" : "INTEGER", "REFERENCES \(RandomTable.quoted(table.0))"]
            if random.chance(70) { words.append("ON DELETE \(random.one(of: Self.actions))") }
            if random.chance(30) { words.append("ON UPDATE \(random.one(of: Self.actions))") }
            if random.chance(30) { words.append("DEFERRABLE INITIALLY DEFERRED") }
        } else {
            let kind = random.one(of: Kind.allCases)
            self.kind = kind
            target = nil
            isRequired = random.chance(25)
            words.append(kind.declaration(isStrict: isStrict, using: &random))
            if isRequired { words.append("NOT NULL DEFAULT \(kind.standard)") }
            if !isRequired, random.chance(20) { words.append("DEFAULT \(kind.standard)") }
            if random.chance(15) {
                words.append("UNIQUE")
                if random.chance(40) { words.append("ON CONFLICT \(random.one(of: Self.clauses))") }
            }
            if random.chance(15) {
                let check = random.one(of: [
                    "%s IS NOT 'c'", "%s >= 0 OR %s = -1 OR %s IS NULL", "length(%s) < 20",
                ])
                words.append("CHECK (\(check.replacing("%s", with: RandomTable.quoted(name))))")
            }
            if kind == .text, random.chance(15) { words.append("COLLATE NOCASE") }
        }
        declaration = words.joined(separator: " ")
    }

    /// Creates a reference to a table, which may be declared later.
    fileprivate init(_ name: String, _ position: Int, _ table: RandomTable, _ action: String) {
        self.name = name
        kind = table.isText ? .text : .integer
        isRequired = false
        target = position
        declaration =
            "\(RandomTable.quoted(name)) \(table.isText ? "TEXT" : "INTEGER") REFERENCES \(table.quoted) \(action)"
    }

    private static let actions = ["CASCADE", "SET NULL", "RESTRICT", "NO ACTION"]
    private static let clauses = ["IGNORE", "REPLACE", "FAIL", "ROLLBACK"]
}

extension RandomColumn.Kind {
    fileprivate func declaration(isStrict: Bool, using random: inout SeededRandom) -> String {
        switch self {
        case .text: isStrict ? "TEXT" : random.one(of: ["TEXT", "VARCHAR(9)", "text"])
        case .integer: isStrict ? "INT" : random.one(of: ["INTEGER", "BIGINT", "int"])
        case .real: isStrict ? "REAL" : random.one(of: ["REAL", "DOUBLE"])
        case .boolean: isStrict ? "INTEGER" : "BOOLEAN"
        case .untyped: isStrict ? "ANY" : random.one(of: ["", "DATE", "JSON"])
        case .blob: "BLOB"
        }
    }

    /// The default of a column that must have a value.
    package var standard: String {
        switch self {
        case .text, .untyped: "'std'"
        case .integer: "7"
        case .real: "0.25"
        case .boolean: "1"
        case .blob: "x'00ff'"
        }
    }

    /// Returns a literal of the column's kind. Some literals are frequent, so that values collide.
    /// - Parameter odd: The number of values in a hundred that SQLite accepts and no set can carry.
    package func literal(using random: inout SeededRandom, odd: Int = 3) -> String {
        if odd > 0, random.chance(odd) { return unsendable(using: &random) }
        return switch self {
        case .text:
            random.one(of: [
                "'a'", "'A'", "'b'", "'c'", "''", "'é'", "'e\u{301}'", "'1e2'", "'''\"'",
            ])
        case .integer: random.one(of: ["0", "1", "2", "3", "-1", "9223372036854775807"])
        case .real: random.one(of: ["0.5", "1.0", "-0.0", "1e300", "3", "5e-324"])
        case .boolean: random.one(of: ["0", "1"])
        case .untyped: random.one(of: ["'a'", "'2026-11-24'", "1", "2.5", "'1.50'"])
        case .blob: random.one(of: ["x''", "x'00'", "x'6162'"])
        }
    }

    private func unsendable(using random: inout SeededRandom) -> String {
        switch self {
        case .text: random.one(of: ["x'c3'", "CAST(x'ff' AS TEXT)", "'a' || char(0) || 'b'"])
        case .integer: random.one(of: ["'word'", "2.5", "x'00'"])
        case .real: random.one(of: ["9e999", "'word'", "x'00'"])
        case .boolean: random.one(of: ["5", "'yes'"])
        case .untyped: random.one(of: ["x'00'", "-9e999", "CAST(x'ff' AS TEXT)"])
        case .blob: "x'ff'"
        }
    }
}
