import MartletModel
import MartletRules
import Testing

/// No rows.
private struct NoRows: RuleRows {
    func visit(
        _ type: Int, where match: (column: Int, value: Value)?, _ body: (RuleRow) throws -> Bool
    ) {}
}

@Suite("Privileges for keys")
struct TextKeyTests {
    @Test(
        "a new record with a text key needs INSERT on the key; the server assigns an integer key",
        arguments: [true, false])
    func privilege(isText: Bool) throws {
        let schema = Schema(types: [
            EntityType(
                name: "players", key: "code", keyKind: isText ? .text : .integer,
                attributes: [Attribute(name: "name", kind: .text)])
        ])
        for columns in ["name", "code, name"] {
            let program = try RulesProgram(
                """
                CREATE POLICY own ON players USING (true);
                GRANT SELECT, INSERT (\(columns)) ON players TO PUBLIC;
                """, schema: schema)
            let evaluator = RuleEvaluator(program, for: Viewer(user: "ann"), over: NoRows())
            var set = JudgedSet()
            set.creates = [
                JudgedSet.Change(
                    RecordAddress(0, isText ? .text("p") : .integer(-1)),
                    Attributes(names: ["name"], values: [.text("Pia")]))
            ]
            let refusal = try set.former(by: evaluator).finding?.refusal
            let isRefused = isText && columns == "name"
            #expect(
                refusal == (isRefused ? .privilege(.insert, columns: ["code"]) : nil), "\(columns)")
        }
    }

    @Test("a condition of a new record finds the one that has its key already")
    func takenKey() throws {
        let schema = Schema(types: [
            EntityType(name: "players", key: "code", keyKind: .text, attributes: [])
        ])
        let program = try RulesProgram(
            """
            CREATE POLICY own ON players FOR SELECT USING (true);
            CREATE POLICY once ON players FOR INSERT
                WITH CHECK (NOT EXISTS (SELECT FROM players AS p WHERE p.code = players.code));
            """, schema: schema)
        let address = RecordAddress(0, .text("p"))
        var set = JudgedSet()
        set.creates = [JudgedSet.Change(address)]
        for taken: [RecordAddress: RuleRow] in [[:], [address: [.text("p")]]] {
            set.taken = taken
            let read: RowReading<any Error> = { _, _, _ in Array(taken.values) }
            let refusal = try RowLookups.working(read) { rows in
                let evaluator = RuleEvaluator(program, for: Viewer(user: "ann"), over: rows)
                return try set.finding(
                    after: JudgedSet.Former(), [address: [.text("p")]], by: evaluator, over: rows
                ) { _, _ in }?.refusal
            }
            #expect(refusal == (taken.isEmpty ? nil : .unpermitted))
        }
    }
}
