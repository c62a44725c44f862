/// SQL that another program may run on tables that were declared at random.
package struct RandomStatements {
    /// The file that they write to. New rows on a device get Martlet's keys, and those on a server
    /// SQLite's.
    package enum Side {
        case device, server
    }

    private let schema: RandomSchema
    private let side: Side
    private let mark: String
    private let sendable: Bool
    private let odd: Int
    private var random: SeededRandom
    /// The generator for statements on rare declarations only, so that the other draws do not
    /// change.
    private var seldom: SeededRandom
    private var count = 0

    /// - Parameters:
    ///   - mark: Part of the text keys of new rows, so that those of several writers differ.
    ///   - sendable: True if a set must be able to carry all values and keys.
    ///   - odd: The number of values in a hundred that no set can carry, if not all are sendable.
    package init(
        _ schema: RandomSchema, seed: UInt64, mark: String = "", on side: Side = .device,
        sendable: Bool = false, odd: Int = 3
    ) {
        self.sendable = sendable || side == .server
        self.odd = odd
        self.schema = schema
        self.side = side
        self.mark = mark
        random = SeededRandom(seed: seed &* 0x9e37_79b9_7f4a_7c15 &+ 77)
        seldom = SeededRandom(seed: seed &* 0xd6e8_feb8_6659_fd93 &+ 5)
    }

    /// Returns a script of one transaction, with the settings of its connection.
    /// - Parameter rotates: Whether records may pass values on to each other.
    package mutating func transaction(foreignKeys: Bool, rotates: Bool = false) -> String {
        var script = "PRAGMA foreign_keys = \(foreignKeys ? "ON" : "OFF");"
        script += " PRAGMA recursive_triggers = \(random.chance(50) ? "ON" : "OFF");\n"
        let body = (0..<Int.random(in: 1...3, using: &random)).map { _ in
            (rotates && random.chance(10) ? rotation() : statement()) + ";"
        }
        guard body.count > 1 || random.chance(20) else { return script + body.joined() }
        if random.chance(25) {
            let undone = statement()
            return script
                + "BEGIN; \(body.joined(separator: "\n")) SAVEPOINT s; \(undone); ROLLBACK TO s; COMMIT;"
        }
        return script + "BEGIN;\n\(body.joined(separator: "\n"))\nCOMMIT;"
    }

    /// Returns a statement for an app's save, which never rolls the whole save back.
    package mutating func ofSave() -> String {
        while true {
            let statement = statement()
            if !statement.contains(" OR ") { return statement }
        }
    }

    /// Returns a statement by which two or three records pass the values of a column on in a
    /// circle.
    package mutating func rotation() -> String {
        let table = random.one(of: schema.tables)
        let (name, key) = (table.quoted, table.quotedKey)
        guard let column = table.columns.filter({ !$0.isRequired }).randomElement(using: &random)
        else { return statement() }
        let count = random.one(of: [2, 2, 3])
        let first = Int.random(in: 0..<3, using: &random)
        let members = "WHERE \(key) IN (SELECT k FROM handed)"
        return """
            DROP TABLE IF EXISTS temp.handed;
            CREATE TEMP TABLE handed AS SELECT \(key) AS k, \(column.quoted) AS v FROM \(name)
            LIMIT \(count) OFFSET \(first);
            UPDATE \(name) SET \(column.quoted) = NULL \(members);
            UPDATE \(name) SET \(column.quoted) = (SELECT next.v FROM handed AS own JOIN handed AS next
            ON next.rowid = own.rowid % (SELECT count(*) FROM handed) + 1
            WHERE own.k = \(name).\(key)) \(members)
            """
    }

    /// Returns a statement that inserts a record under the next temporary id.
    package mutating func newRecord(_ table: RandomTable) -> String {
        let columns = table.columns.filter { $0.target == nil }
        let names = ([table.quotedKey] + columns.map(\.quoted)).joined(separator: ", ")
        let row = ["(SELECT id FROM martlet_new_id)"] + columns.map { value($0) }
        return "INSERT INTO \(table.quoted)(\(names)) VALUES (\(row.joined(separator: ", ")))"
    }

    /// Returns one statement that writes to one of the tables.
    package mutating func statement() -> String {
        if let circle = schema.circle, seldom.chance(15) { return around(circle) }
        let table = random.one(of: schema.tables)
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<8: return insert(table)
        case 8..<10: return upsert(table)
        case 10..<16: return update(table)
        case 16: return keyChange(table)
        case 17: return "/* all */ DELETE FROM \(table.quoted)"
        default: return "DELETE FROM \(table.quoted) WHERE \(condition(table))"
        }
    }

    /// Makes a row refer to one that is deleted with another, and replaces the latter by the first.
    private mutating func around(_ circle: RandomSchema.Circle) -> String {
        func row(_ table: RandomTable) -> String {
            let offset = Int.random(in: 0..<4, using: &seldom)
            return
                "(SELECT \(table.quotedKey) FROM \(table.quoted) ORDER BY 1 LIMIT 1 OFFSET \(offset))"
        }
        let (first, second) = (schema.tables[circle.first], schema.tables[circle.second])
        let (out, between, last) = (row(first), row(second), row(first))
        let push = """
            UPDATE OR REPLACE \(first.quoted) SET \(circle.unique) = (SELECT \(circle.unique) FROM \(first.quoted)
            WHERE \(first.quotedKey) = \(out)) WHERE \(first.quotedKey) = \(last)
            """
        guard seldom.chance(70) else { return push }
        return """
            UPDATE \(second.quoted) SET \(circle.up) = \(out) WHERE \(second.quotedKey) = \(between);
            UPDATE \(first.quoted) SET \(circle.back) = \(between) WHERE \(first.quotedKey) = \(last);
            \(push)
            """
    }

    private mutating func insert(_ table: RandomTable) -> String {
        let verb = random.one(of: [
            "INSERT", "INSERT", "INSERT", "INSERT OR REPLACE", "REPLACE", "INSERT OR IGNORE",
            "INSERT OR FAIL", "INSERT OR ROLLBACK",
        ])
        return "\(verb) INTO \(table.quoted)\(values(table))"
    }

    private mutating func upsert(_ table: RandomTable) -> String {
        let column = random.one(of: table.columns)
        let value = random.chance(50) ? "excluded.\(column.quoted)" : value(column)
        let target = random.chance(50) ? "(\(table.quotedKey))" : ""
        let action = random.chance(70) ? "UPDATE SET \(column.quoted) = \(value)" : "NOTHING"
        let values = values(table)
        let conflict = values == " DEFAULT VALUES" ? "" : " ON CONFLICT\(target) DO \(action)"
        return "INSERT INTO \(table.quoted)\(values)\(conflict)"
    }

    /// Returns the columns and values of an insert.
    private mutating func values(_ table: RandomTable) -> String {
        let columns = table.columns.filter { $0.isRequired || random.chance(80) }
        let names = ([table.quotedKey] + columns.map(\.quoted)).joined(separator: ", ")
        guard table.isText, random.chance(20) else {
            let row = ([key(table)] + columns.map { value($0) }).joined(separator: ", ")
            if table.isText, table.hasRowID, random.chance(8) {
                let rowid = Int.random(in: 1..<5, using: &random)
                return "(rowid, \(names)) VALUES (\(rowid), \(row))"
            }
            // If an integer key is left out, SQLite chooses it.
            if !table.isText, random.chance(5) {
                guard !columns.isEmpty else { return " DEFAULT VALUES" }
                let values = columns.map { value($0) }.joined(separator: ", ")
                return "(\(columns.map(\.quoted).joined(separator: ", "))) VALUES (\(values))"
            }
            return "(\(names)) VALUES (\(row))"
        }
        let rows = (0..<2).map { _ in
            "(" + ([key(table)] + columns.map { value($0) }).joined(separator: ", ") + ")"
        }
        return "(\(names)) VALUES \(rows.joined(separator: ", "))"
    }

    private mutating func update(_ table: RandomTable) -> String {
        let verb = random.one(of: [
            "UPDATE", "UPDATE", "UPDATE", "UPDATE OR REPLACE", "UPDATE OR IGNORE", "UPDATE OR FAIL",
        ])
        let column = random.one(of: table.columns)
        var changes = ["\(column.quoted) = \(value(column))"]
        if random.chance(30) {
            let other = random.one(of: table.columns)
            if other.name != column.name { changes.append("\(other.quoted) = \(value(other))") }
        }
        let condition = condition(table)
        return "\(verb) \(table.quoted) SET \(changes.joined(separator: ", ")) WHERE \(condition)"
    }

    private mutating func keyChange(_ table: RandomTable) -> String {
        let verb = random.one(of: ["UPDATE", "UPDATE OR REPLACE", "UPDATE OR IGNORE"])
        var change = "\(table.quotedKey) = \(key(table))"
        if table.hasRowID, random.chance(40) {
            let rowID = random.one(of: ["rowid", "_rowid_", "oid"])
            change = "\(rowID) = \(Int.random(in: 1..<9, using: &random))"
        }
        return "\(verb) \(table.quoted) SET \(change) WHERE \(condition(table))"
    }

    private mutating func condition(_ table: RandomTable) -> String {
        let column = random.one(of: table.columns)
        return random.one(of: [
            "\(table.quotedKey) = \(existingKey(table))",
            "\(table.quotedKey) = \(existingKey(table))",
            "\(table.quotedKey) = \(existingKey(table))", "\(column.quoted) IS \(value(column))",
            "\(table.quotedKey) IN (SELECT \(table.quotedKey) FROM \(table.quoted) LIMIT 2)", "1",
        ])
    }

    /// Returns a key for a new row, mostly a free one.
    private mutating func key(_ table: RandomTable) -> String {
        if random.chance(20) {
            let key = existingKey(table)
            return table.isText && random.chance(20) ? "upper(\(key))" : key
        }
        if table.isText {
            count += 1
            // Some keys have a meaning and are used again.
            if random.chance(20) { return random.one(of: ["'p'", "'q'", "'r'"]) }
            return side == .server || random.chance(85)
                ? "'k\(mark)\(count)'" : random.one(of: sendable ? Self.rareTexts : Self.oddTexts)
        }
        if side == .server {
            return random.chance(95) ? "NULL" : random.one(of: ["4000", "9007199254740991"])
        }
        if random.chance(4) { return "ifnull(\(Self.deletedKey), (SELECT id FROM martlet_new_id))" }
        return random.chance(88)
            ? "(SELECT id FROM martlet_new_id)"
            : random.one(of: sendable ? Self.rareKeys : Self.oddKeys)
    }

    private static let rareTexts = ["'K1'", "''", "'1'"]
    private static let rareKeys = ["0", "-1", "77", "-50", "NULL"]
    private static let oddTexts = [
        "'K1'", "''", "NULL", "'1'", "x'00'", "'a' || char(0)", "CAST(x'61ff' AS TEXT)",
    ]
    /// The key of a record whose deletion is queued.
    private static let deletedKey =
        "(SELECT id FROM martlet_changes WHERE operation = 3 AND id > 0 LIMIT 1)"
    private static let oddKeys = [
        "0", "-1", "77", "-50", "NULL", "-9223372036854775808", "9223372036854775807",
    ]

    private mutating func existingKey(_ table: RandomTable) -> String {
        let offset = Int.random(in: 0..<4, using: &random)
        let key = "(SELECT \(table.quotedKey) FROM \(table.quoted) LIMIT 1 OFFSET \(offset))"
        return key
    }

    private mutating func value(_ column: RandomColumn) -> String {
        if schema.hasRare, column.isRequired, seldom.chance(20) {
            return seldom.chance(50) ? "NULL" : column.kind.standard
        }
        if !column.isRequired, random.chance(20) { return "NULL" }
        guard let target = column.target else {
            return column.kind.literal(using: &random, odd: sendable ? 0 : odd)
        }
        return existingKey(schema.tables[target])
    }
}
