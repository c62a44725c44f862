import MartletTesting

/// SQL of another program on a server's file: beside what `RandomStatements` has, copies of rows that meet
/// others, keys that change their case, values and keys that change places, and values at the edges.
struct ServerProgram {
    private let schema: RandomSchema
    private var statements: RandomStatements
    private var random: SeededRandom
    /// For what rare declarations alone have, so that the rest stays as it is.
    private var seldom: SeededRandom
    private var count = 0

    init(_ schema: RandomSchema, seed: UInt64) {
        self.schema = schema
        statements = RandomStatements(schema, seed: seed, on: .server)
        random = SeededRandom(seed: seed &* 0xbf58_476d_1ce4_e5b9 &+ 3)
        seldom = SeededRandom(seed: seed &* 0xd6e8_feb8_6659_fd93 &+ 9)
    }

    /// A script of one transaction, with the settings of the connection that runs it.
    mutating func transaction() -> String {
        let foreignKeys = random.chance(85)
        guard random.chance(60) else { return statements.transaction(foreignKeys: foreignKeys) }
        let settings = """
            PRAGMA foreign_keys = \(foreignKeys ? "ON" : "OFF");
            PRAGMA recursive_triggers = \(random.chance(50) ? "ON" : "OFF");
            """
        let body = (0..<Int.random(in: 1...3, using: &random)).map { _ in statement() + ";" }
        return "\(settings)\nBEGIN;\n\(body.joined(separator: "\n"))\nCOMMIT;"
    }

    /// A row for each table, which refers to rows that are there.
    mutating func populating() -> String {
        schema.tables.map { table in
            count += 1
            let columns = [table.quotedKey] + table.columns.map(\.quoted)
            let key = table.isText ? "'row\(count)'" : "NULL"
            let values = [key] + table.columns.map { literal($0) }
            return "INSERT OR IGNORE INTO \(table.quoted)(\(columns.joined(separator: ", "))) "
                + "VALUES (\(values.joined(separator: ", ")));"
        }.joined(separator: "\n")
    }

    private mutating func statement() -> String {
        let table = random.one(of: schema.tables)
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<4: return copy(table)
        case 4..<6: return rewritten(table)
        case 6: return exchange(table)
        case 7: return edge(table)
        case 8: return odd(table)
        default: return statements.statement()
        }
    }

    private mutating func verb(_ word: String) -> String {
        let clause = random.one(of: ["", " OR REPLACE", " OR REPLACE", " OR IGNORE", " OR FAIL"])
        return word + clause
    }

    /// The rows that a statement is about.
    private mutating func some(_ table: RandomTable) -> String {
        let offset = Int.random(in: 0..<5, using: &random)
        let few = Int.random(in: 1...3, using: &random)
        return """
            \(table.quotedKey) IN (SELECT \(table.quotedKey) FROM \(table.quoted) \
            ORDER BY 1 LIMIT \(few) OFFSET \(offset))
            """
    }

    /// A value as it is, or in another case: what a collation or an expression takes for the same.
    private mutating func varied(_ column: RandomColumn) -> String {
        guard column.target == nil, column.kind == .text || column.kind == .untyped else {
            return column.quoted
        }
        let function = random.one(of: ["", "", "upper", "lower", "rtrim"])
        return "\(function)(\(column.quoted))"
    }

    private mutating func newKey(_ table: RandomTable) -> String {
        count += 1
        guard table.isText else { return "NULL" }
        return random.one(of: [
            "'copy\(count)'", "'copy\(count)'", "upper(\(table.quotedKey))",
            "lower(\(table.quotedKey))", table.quotedKey,
        ])
    }

    private mutating func copy(_ table: RandomTable) -> String {
        let key = newKey(table)
        let columns = table.columns.map(\.quoted).joined(separator: ", ")
        let values = table.columns.map { column in
            random.chance(15) ? literal(column) : varied(column)
        }.joined(separator: ", ")
        let verb = verb("INSERT")
        return """
            \(verb) INTO \(table.quoted)(\(table.quotedKey), \(columns)) \
            SELECT \(key), \(values) FROM \(table.quoted) WHERE \(some(table))
            """
    }

    /// Values or the key, in another case.
    private mutating func rewritten(_ table: RandomTable) -> String {
        let function = random.one(of: ["upper", "lower"])
        var change = "\(table.quotedKey) = \(function)(\(table.quotedKey))"
        if !table.isText || random.chance(40) {
            let column = random.one(of: table.columns)
            let value = random.chance(60) ? varied(column) : literal(column)
            change = "\(column.quoted) = \(value)"
        }
        return "\(verb("UPDATE")) \(table.quoted) SET \(change) WHERE \(some(table))"
    }

    /// Two rows change places: under their keys, or with one value.
    private mutating func exchange(_ table: RandomTable) -> String {
        let key = table.quotedKey
        let ends =
            "(SELECT min(\(key)) FROM \(table.quoted)), (SELECT max(\(key)) FROM \(table.quoted))"
        if !table.isText, random.chance(50) {
            return """
                CREATE TEMP TABLE ends AS SELECT min(\(key)) AS a, max(\(key)) AS b FROM \(table.quoted);
                UPDATE \(table.quoted) SET \(key) = -99 WHERE \(key) = (SELECT a FROM ends);
                UPDATE \(table.quoted) SET \(key) = (SELECT a FROM ends) WHERE \(key) = (SELECT b FROM ends);
                UPDATE \(table.quoted) SET \(key) = (SELECT b FROM ends) WHERE \(key) = -99;
                DROP TABLE ends
                """
        }
        let column = random.one(of: table.columns).quoted
        return """
            CREATE TEMP TABLE held AS SELECT \(key) AS k, \(column) AS v FROM \(table.quoted)
                WHERE \(key) IN (\(ends));
            UPDATE OR IGNORE \(table.quoted) SET \(column) = NULL WHERE \(key) IN (\(ends));
            UPDATE OR IGNORE \(table.quoted) SET \(column) =
                (SELECT v FROM held WHERE k <> \(key)) WHERE \(key) IN (SELECT k FROM held);
            DROP TABLE held
            """
    }

    /// A row under a key at an edge.
    private mutating func edge(_ table: RandomTable) -> String {
        let keys =
            table.isText
            ? [
                "''", "'a' || char(0)", "CAST(x'61ff' AS TEXT)", "x'00'", "'\u{1f600}'", "' '",
                "'-1'",
            ]
            : [
                "0", "-1", "-9223372036854775808", "9223372036854775807", "9223372036854775806",
                "4611686018427387904", "4611686018427387905", "4611686018427387903",
                "2305843009213693952", "2305843009213693953", "9007199254740993",
            ]
        let columns = [table.quotedKey] + table.columns.map(\.quoted)
        let values = [random.one(of: keys)] + table.columns.map { literal($0) }
        return """
            INSERT OR IGNORE INTO \(table.quoted)(\(columns.joined(separator: ", "))) \
            VALUES (\(values.joined(separator: ", ")))
            """
    }

    /// A value that no device can be sent, or the end of one.
    private mutating func odd(_ table: RandomTable) -> String {
        let column = random.one(of: table.columns)
        let value: String
        switch column.kind {
        case _ where random.chance(40): value = literal(column)
        case .text:
            value = random.one(of: ["x'c3'", "CAST(x'ff' AS TEXT)", "'a' || char(0) || 'b'"])
        case .real: value = "9e999"
        case .untyped: value = random.one(of: ["-9e999", "CAST(x'ff' AS TEXT)"])
        case .integer, .boolean, .blob: value = literal(column)
        }
        return
            "UPDATE OR IGNORE \(table.quoted) SET \(column.quoted) = \(value) WHERE \(some(table))"
    }

    private mutating func literal(_ column: RandomColumn) -> String {
        if column.isRequired, seldom.chance(25) {
            return seldom.chance(60) ? "NULL" : column.kind.standard
        }
        guard let target = column.target else {
            return column.kind.literal(using: &random, odd: 0)
        }
        let table = schema.tables[target]
        let offset = Int.random(in: 0..<8, using: &random)
        return
            "(SELECT \(table.quotedKey) FROM \(table.quoted) ORDER BY 1 LIMIT 1 OFFSET \(offset))"
    }
}
