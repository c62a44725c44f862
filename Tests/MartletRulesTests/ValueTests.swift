import MartletModel
import MartletRules
import Testing

/// Rows of other types; none.
private struct NoRows: RuleRows {
    func visit(
        _ type: Int, where match: (column: Int, value: Value)?, _ body: (RuleRow) throws -> Bool
    ) throws {}
}

@Suite("Values that conditions compute")
struct ValueTests {
    /// Returns the outcome of a condition for a row with a text, a number with digits and a double.
    private static func outcome(
        _ condition: String, text: String = "x", fee: String = "1", _ viewer: Viewer = Viewer()
    ) throws -> PolicyFinding.Outcome? {
        let schema = Schema(types: [
            EntityType(
                name: "things", key: "id", keyKind: .integer,
                attributes: [
                    Attribute(name: "name", kind: .text), Attribute(name: "fee", kind: .numeric),
                    Attribute(name: "share", kind: .real),
                ])
        ])
        let program = try RulesProgram(
            "CREATE POLICY p ON things USING (\(condition))", schema: schema)
        return try RuleEvaluator(program, for: viewer, over: NoRows()).judgement(
            of: [.integer(1), .text(text), .text(fee), .real(2)], type: 0
        ).policies.first?.outcome
    }

    private static let uuid = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"

    @Test(
        "a text in any of PostgreSQL's forms of a uuid is the uuid",
        arguments: [
            uuid, "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
            "a0eebc999c0b4ef8bb6d6bb9bd380a11", "{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}",
        ])
    func uuids(text: String) throws {
        #expect(
            try Self.outcome("name::uuid = '\(Self.uuid.uppercased())'::uuid", text: text) == .holds
        )
    }

    @Test(
        "any other text has no uuid",
        arguments: [
            "x", "", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a111",
            "a0eebc99--9c0b-4ef8-bb6d-6bb9bd380a11", "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "a0e-ebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11-",
            "-a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "g0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        ])
    func noUUIDs(text: String) throws {
        #expect(
            try Self.outcome("name::uuid <> '\(Self.uuid)'::uuid", text: text)
                == .fault("a text is no uuid"))
    }

    /// The column that a policy compares is declared UUID, and holds texts as devices wrote them.
    private static func shown(
        _ condition: String, _ text: String, isCanonical: Bool = false
    ) throws -> Bool {
        let attribute = Attribute(
            name: "owner", kind: isCanonical ? .text : .any,
            meaning: .uuid(isCanonical: isCanonical))
        let schema = Schema(types: [
            EntityType(
                name: "things", key: "id", keyKind: .integer,
                attributes: [attribute, Attribute(name: "name", kind: .text)])
        ])
        let program = try RulesProgram(
            "CREATE POLICY p ON things USING (\(condition))", schema: schema)
        return try RuleEvaluator(program, for: Viewer(user: text), over: NoRows()).judgement(
            of: [.integer(1), .text(text), .text(text)], type: 0
        ).isShown
    }

    @Test("a text in quotes that is compared with a uuid is the uuid, in each position")
    func uuidLiterals() throws {
        let other = "b0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
        let odd = "'{\(uuid.uppercased().replacing("-", with: ""))}'"
        for column in ["owner", "name::uuid"] {
            for text in [uuid, uuid.uppercased()] {
                for condition in [
                    "@ = #", "# = @", "@ IN ('\(other)', #)", "# IN (@, '\(other)')",
                    "@ BETWEEN # AND #", "# BETWEEN @ AND @", "@ IS NOT DISTINCT FROM #",
                    "@ IN (SELECT #)", "@ = (SELECT #)", "@ = coalesce(NULL, #)",
                    "coalesce(@, #) = #", "nullif(@, #) IS NULL", "@ = nullif(#, 'x')",
                    "@ = #::uuid",
                    "@::text = '\(uuid)'", "@ = name::uuid",
                ] {
                    let condition = condition.replacing("@", with: column)
                        .replacing("#", with: odd)
                    #expect(try Self.shown(condition, text), "\(condition) \(text)")
                    #expect(
                        try !Self.shown("NOT (\(condition))", text), "NOT \(condition) \(text)")
                }
                #expect(try !Self.shown("\(column) <> \(odd)", text))
                #expect(try !Self.shown("\(column) NOT IN (\(odd))", text))
                #expect(try !Self.shown("\(column) IS DISTINCT FROM \(odd)", text))
            }
        }
        #expect(try Self.shown("owner = \(odd)", uuid, isCanonical: true))
        #expect(try Self.shown("owner = martlet_user()", "no uuid"))
        #expect(try !Self.shown("owner <> \(odd)", "no uuid"))
    }

    private var uuid: String { Self.uuid }

    @Test("an integer of a small type has its range")
    func ranges() throws {
        let number = { (text: String) in Viewer(claims: ["n": text]) }
        for (type, inside, beyond) in [
            ("integer", "-2147483648", "-2147483649"), ("int4", "2147483647", "2147483648"),
            ("smallint", "-32768", "32768"),
            ("bigint", "9223372036854775807", "9223372036854775808"),
        ] {
            let condition = "martlet_claim('n')::\(type) <> 0"
            #expect(try Self.outcome(condition, number(inside)) == .holds)
            let outcome = try Self.outcome(condition, number(beyond))
            guard case .fault = outcome else {
                Issue.record("\(beyond) is an \(type): \(String(describing: outcome))")
                continue
            }
        }
        #expect(throws: RulesFault.self) { try Self.outcome("'32768'::smallint = id") }
        #expect(throws: RulesFault.self) { try Self.outcome("'x'::uuid = name") }
    }

    @Test("NaN equals itself, and is greater than every number")
    func notANumber() throws {
        for (condition, isTrue) in [
            ("fee > 1000000", true), ("fee = 3", false), ("fee = fee", true), ("fee > share", true),
            ("fee::double precision < 5", false), ("'NaN'::numeric = fee", true),
        ] {
            #expect(
                try Self.outcome(condition, fee: "NaN") == (isTrue ? .holds : .fails),
                "\(condition)")
        }
        #expect(try Self.outcome("fee < -5", fee: "-Infinity") == .holds)
        guard case .fault = try Self.outcome("name::double precision > 1", text: "1e999") else {
            Issue.record("a double holds 1e999")
            return
        }
    }

    @Test("a setting without a value is a fault, unless it may be missing")
    func settings() throws {
        let setting = "current_setting('martlet.user'"
        #expect(try Self.outcome("\(setting), true) IS NULL") == .holds)
        #expect(try Self.outcome("\(setting), true) IS NULL", Viewer(user: "a")) == .fails)
        for second in [")", ", false)"] {
            let condition = "\(setting)\(second) IS NULL"
            #expect(
                try Self.outcome(condition) == .fault("the setting “martlet.user” has no value"))
            #expect(try Self.outcome(condition, Viewer(user: "a")) == .fails)
        }
    }

    @Test("a day is in PostgreSQL's range")
    func days() throws {
        #expect(try Self.outcome("martlet_today() + 2000000000 > martlet_today()") == .holds)
        #expect(
            try Self.outcome("martlet_today() + 2145042906 > martlet_today()")
                == .fault("a day is out of range"))
    }
}
