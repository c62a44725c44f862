extension RandomRules.Policies {
    /// Makes a file for these tables.
    init(
        over tables: [RandomRules.Table], _ chance: inout Chance, restrictsReading: Bool = false
    ) {
        // If the SELECT policies of a table read nothing, its other policies may read the table itself.
        for (index, table) in tables.enumerated() {
            let isPlain = chance.percent(30)
            for number in 0..<chance.number(0..<4) {
                let command = chance.one(of: ["ALL", "ALL", "SELECT", "INSERT", "UPDATE", "DELETE"])
                let reads =
                    !isPlain
                    ? index + 1 : ["ALL", "SELECT"].contains(command) ? tables.count : index
                var writer = RandomCondition(tables: tables, readable: reads)
                file += Self.policy("p\(number)", on: table, for: command, &writer, &chance)
            }
            if !isPlain, index < tables.count - 1, chance.percent(40) {
                var writer = RandomCondition(tables: tables, readable: index + 1)
                let command = chance.one(of: ["", "", " FOR SELECT", " FOR UPDATE", " FOR DELETE"])
                file += """
                    CREATE POLICY "a member's" ON \(table.sql)\(command)
                      USING (\(writer.membership(of: table, &chance)));

                    """
            }
            if restrictsReading, !isPlain, index < tables.count - 1, chance.percent(60) {
                let word = chance.percent(50) ? "NOT EXISTS" : "EXISTS"
                let last = tables[tables.count - 1]
                file += """
                    CREATE POLICY read ON \(table.sql)\(chance.percent(50) ? " FOR SELECT" : "")
                      USING (\(word) (SELECT FROM \(last.sql) AS m
                        WHERE m.\(last.columns[0].sql) = \(table.sql).\(table.columns[0].sql)));

                    """
            }
            if chance.percent(10) {
                file += "ALTER TABLE \(table.sql) DISABLE ROW LEVEL SECURITY;\n"
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
        var text = "CREATE POLICY \(name) ON \(table.sql)"
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
        var text = "GRANT SELECT ON \(table.sql) TO \(reader);\n"
        for command in ["INSERT", "UPDATE", "DELETE"] where chance.percent(70) {
            let role = chance.percent(50) ? "PUBLIC" : chance.one(of: RandomRules.roles)
            let columns = ([table.sqlKey] + table.columns.map(\.sql)).filter { _ in
                chance.percent(60)
            }
            let some = command == "DELETE" || columns.isEmpty || chance.percent(40)
            text += "GRANT \(command)" + (some ? "" : "(\(columns.joined(separator: ", ")))")
            text += " ON \(table.sql) TO \(role);\n"
            if chance.percent(20) {
                text +=
                    "REVOKE \(command) ON \(table.sql) FROM \(chance.one(of: RandomRules.roles));\n"
            }
        }
        return text
    }
}
