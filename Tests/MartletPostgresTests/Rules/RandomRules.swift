import MartletModel

/// Tables, rows and policies that chance makes, as the text that PostgreSQL and Martlet read.
struct RandomRules {
    /// The types of the tables' columns.
    enum Kind: CaseIterable {
        case integer, text, date, boolean, numeric

        var sql: String {
            switch self {
            case .integer: "bigint"
            case .text: "text"
            case .date: "date"
            case .boolean: "boolean"
            case .numeric: "numeric"
            }
        }

        var kind: AttributeKind {
            switch self {
            case .integer: .integer
            case .text: .text
            case .date: .any
            case .boolean: .boolean
            case .numeric: .numeric
            }
        }
    }

    struct Table {
        let name: String
        var columns: [(name: String, kind: Kind)]

        var names: [String] { ["id"] + columns.map(\.name) }
    }

    static let roles = ["coach", "office", "guest"]

    /// Returns the roles of a set, in which each role is a bit.
    static func roles(of set: Int) -> [String] {
        roles.enumerated().filter { set >> $0.offset & 1 == 1 }.map(\.element)
    }

    /// A rules file.
    struct Policies {
        var file = ""
        /// The tables that a GRANT of the file names.
        private(set) var granted: Set<String> = []
    }

    let tables: [Table]
    let rows: [[[Value]]]
    let policies: Policies

    /// - Parameter restrictsReading: Whether not everyone may SELECT all tables.
    init(_ chance: inout Chance, restrictsReading: Bool = false) {
        let names = ["clubs", "teams", "players", "notes"]
        let tables = names.map { name in
            let kinds = (0..<chance.number(2..<6)).map { _ in chance.one(of: Kind.allCases) }
            return Table(
                name: name,
                columns: ([.integer, .text] + kinds).enumerated().map { ("c\($0)", $1) })
        }
        self.tables = tables
        rows = tables.map { table in
            (1...chance.number(3..<9)).map { Self.row(Int64($0), of: table, &chance) }
        }
        policies = Policies(over: tables, &chance, restrictsReading: restrictsReading)
    }

    static func row(_ id: Int64, of table: Table, _ chance: inout Chance) -> [Value] {
        [.integer(id)] + table.columns.map { value($0.kind, &chance) }
    }

    static func value(_ kind: Kind, _ chance: inout Chance) -> Value {
        if chance.percent(15) { return .null }
        switch kind {
        case .integer: return .integer(Int64(chance.number(-2..<7)))
        case .text: return .text(chance.one(of: texts))
        case .date: return .text(chance.one(of: days))
        case .boolean: return .boolean(chance.percent(50))
        case .numeric: return .text(chance.one(of: ["1.50", "1.5", "-2", "10", "0.0", "3"]))
        }
    }

    static let texts = ["ann", "Ann", "bob", "", "a%b", "é", "a_b", "zoë", "3"]
    static let days = [
        "2026-11-25", "2026-11-26", "2026-11-27", "2026-11-28", "2024-02-29", "2027-01-01",
    ]

    /// A value as PostgreSQL reads it.
    static func literal(_ value: Value) -> String {
        switch value {
        case .null: "NULL"
        case .boolean(let flag): flag ? "true" : "false"
        case .integer(let number): "\(number)"
        case .real(let number): "\(number)"
        case .text(let text): "'\(text.replacing("'", with: "''"))'"
        }
    }
}

extension RandomRules.Policies {
    /// Makes a file for these tables.
    init(
        over tables: [RandomRules.Table], _ chance: inout Chance, restrictsReading: Bool = false
    ) {
        // Policies read only tables that come later in this order, so that no circle arises. If the
        // SELECT policies of a table read nothing, its other policies may read the table itself.
        for (index, table) in tables.enumerated() {
            let isPlain = chance.percent(30)
            for number in 0..<chance.number(0..<4) {
                let command = chance.one(of: ["ALL", "ALL", "SELECT", "INSERT", "UPDATE", "DELETE"])
                let reads = !isPlain ? index + 1 : ["ALL", "SELECT"].contains(command) ? 4 : index
                var writer = RandomCondition(tables: tables, readable: reads)
                file += Self.policy("p\(number)", on: table, for: command, &writer, &chance)
            }
            if restrictsReading, !isPlain, index < tables.count - 1, chance.percent(60) {
                let word = chance.percent(50) ? "NOT EXISTS" : "EXISTS"
                file += """
                    CREATE POLICY read ON \(table.name)\(chance.percent(50) ? " FOR SELECT" : "")
                      USING (\(word) (SELECT FROM notes AS n WHERE n.c0 = \(table.name).c0));

                    """
            }
            if chance.percent(10) {
                file += "ALTER TABLE \(table.name) DISABLE ROW LEVEL SECURITY;\n"
            }
            // Other tables' policies read the last one most.
            let isRead = restrictsReading && index == tables.count - 1
            if chance.percent(isRead ? 80 : 30) {
                granted.insert(table.name)
                file += Self.grants(table, &chance, restrictsReading)
            }
        }
    }

    private static func policy(
        _ name: String, on table: RandomRules.Table, for command: String,
        _ writer: inout RandomCondition,
        _ chance: inout Chance
    ) -> String {
        var text = "CREATE POLICY \(name) ON \(table.name)"
        if chance.percent(25) { text += " AS RESTRICTIVE" }
        if command != "ALL" || chance.percent(50) { text += " FOR \(command)" }
        if chance.percent(40) {
            text +=
                " TO \(chance.one(of: RandomRules.roles))" + (chance.percent(20) ? ", office" : "")
        }
        if command != "INSERT", chance.percent(90) {
            text += "\n  USING (\(writer.condition(of: table, &chance)))"
        }
        if !["SELECT", "DELETE"].contains(command), chance.percent(command == "INSERT" ? 95 : 40) {
            text += "\n  WITH CHECK (\(writer.condition(of: table, &chance)))"
        }
        return text + ";\n"
    }

    private static func grants(
        _ table: RandomRules.Table, _ chance: inout Chance, _ restrictsReading: Bool
    ) -> String {
        // Without SELECT, PostgreSQL refuses each statement whose policies read the table.
        let reader =
            restrictsReading && chance.percent(70) ? chance.one(of: RandomRules.roles) : "PUBLIC"
        var text = "GRANT SELECT ON \(table.name) TO \(reader);\n"
        for command in ["INSERT", "UPDATE", "DELETE"] where chance.percent(70) {
            let role = chance.percent(50) ? "PUBLIC" : chance.one(of: RandomRules.roles)
            let columns = table.names.filter { _ in chance.percent(60) }
            let some = command == "DELETE" || columns.isEmpty || chance.percent(40)
            text += "GRANT \(command)" + (some ? "" : "(\(columns.joined(separator: ", ")))")
            text += " ON \(table.name) TO \(role);\n"
            if chance.percent(20) {
                text +=
                    "REVOKE \(command) ON \(table.name) FROM \(chance.one(of: RandomRules.roles));\n"
            }
        }
        return text
    }
}
