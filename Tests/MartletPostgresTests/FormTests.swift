import MartletModel
internal import MartletServerCore
import PostgresKit
import SQLiteKit
import SQLiteRecords
import Testing

@testable import MartletPostgres

@Suite("Values between PostgreSQL, wire and device")
struct FormTests {
    private static let table = """
        CREATE TYPE mood AS ENUM ('bad', 'it''s fine');
        CREATE DOMAIN percent AS numeric(5, 2) CHECK (VALUE BETWEEN 0 AND 100);
        CREATE TABLE v (id bigserial PRIMARY KEY, i2 smallint, i4 integer, i8 bigint, b boolean,
            r real, d double precision, n numeric, n2 numeric(10, 2), t text, vc varchar(5), c char(4),
            da date, ti time, ts timestamp, tz timestamptz, u uuid, by bytea, j json, jb jsonb,
            ta text[], ia integer[], ba bigint[], m mood, p percent);
        INSERT INTO v DEFAULT VALUES;
        """

    /// A column, what a device sends, and what is kept where that is another form of it.
    private static let values: [(String, Value, Value?)] = [
        ("i2", .integer(-32_768), nil), ("i2", .integer(32_767), nil),
        ("i4", .integer(-2_147_483_648), nil), ("i8", .integer(.min), nil),
        ("i8", .integer(.max), nil), ("b", .boolean(true), nil), ("b", .boolean(false), nil),
        ("r", .real(0.1), nil), ("r", .real(3.4028235e38), nil), ("r", .real(1e-45), nil),
        ("r", .real(16_777_217), .real(16_777_216)), ("r", .integer(3), .real(3)),
        ("d", .real(0.1), nil), ("d", .real(.greatestFiniteMagnitude), nil),
        ("d", .real(.leastNonzeroMagnitude), nil), ("d", .integer(3), .real(3)),
        ("n", .text("123456789012345678901234567890.00010"), nil), ("n", .text("-0.50"), nil),
        ("n", .text("NaN"), nil), ("n", .text("Infinity"), nil), ("n", .text("007"), .text("7")),
        ("n2", .text("1.005"), .text("1.01")), ("n2", .text("3"), .text("3.00")),
        ("t", .text(""), nil), ("t", .text("é\u{301}\n\\\"'{}𐀀"), nil), ("t", .text("NULL"), nil),
        ("vc", .text("ÄÖÜßé"), nil), ("vc", .text("abc     "), .text("abc  ")),
        ("c", .text("ab"), .text("ab  ")), ("c", .text("    "), nil),
        ("da", .text("2026-01-31"), nil), ("da", .text("0044-03-15 BC"), nil),
        ("da", .text("infinity"), nil), ("da", .text("5874897-12-31"), nil),
        ("da", .text("2026-01-31T10:00:00.000Z"), .text("2026-01-31")),
        ("ti", .text("09:30"), .text("09:30:00")), ("ti", .text("24:00:00"), nil),
        ("ti", .text("23:59:59.999999"), nil),
        ("ts", .text("2026-01-31 09:30:00.12"), nil), ("ts", .text("-infinity"), nil),
        ("ts", .text("2026-01-31T09:30:00.120Z"), .text("2026-01-31 09:30:00.12")),
        ("tz", .text("2026-01-31 09:30:00.000001+00"), nil),
        ("tz", .text("2026-01-31T09:30:00.000Z"), .text("2026-01-31 09:30:00+00")),
        ("tz", .text("2026-01-31 09:30:00+05:30"), .text("2026-01-31 04:00:00+00")),
        ("u", .text("0b5a6f0e-8a2c-4b52-9d5c-3f1f5b6a7c8d"), nil),
        ("by", .text("AAEC/w=="), nil), ("by", .text(""), nil),
        ("j", .text("{\"b\": 1,  \"a\":1.50, \"a\":2}"), nil), ("j", .text("1.0"), nil),
        ("jb", .text("{\"b\":1,  \"a\":1.50}"), .text("{\"a\": 1.50, \"b\": 1}")),
        ("jb", .text("1"), nil), ("jb", .text("null"), nil),
        ("ta", .text("{a,\"b c\",NULL,\"\",\"NULL\",\"q\\\"\\\\\"}"), nil),
        ("ta", .text("{}"), nil), ("ta", .text("{{a,b},{c,d}}"), nil),
        ("ia", .text("{1,-2,NULL}"), nil), ("ia", .text("[0:1]={1,2}"), nil),
        ("ba", .text("{9223372036854775807}"), nil),
        ("ba", .text("{ 1 , 2 }"), .text("{1,2}")),
        ("m", .text("it's fine"), nil), ("p", .text("99.9"), .text("99.90")),
    ]

    @Test("come back as they were, or in PostgreSQL's one form, on every way")
    func roundTripOfForms() async throws {
        let database = try await TestDatabase.make()
        try await database.connected { connection in
            try connection.execute(Self.table)
            try connection.register(["v"])
            let schema = try PostgresSchema.read(connection)
            let table = schema.tables[0]
            let device = try Connection(path: ":memory:")
            try device.execute(schema.deviceScript)
            let records = RecordTable(type: table.type, connection: device)
            var hasher = RowHasher(type: table.type)
            let names = table.type.attributes.map(\.name)
            for (index, (name, sent, kept)) in Self.values.enumerated() {
                let column = try #require(table.columns.first { $0.name == name })
                #expect(column.mismatch(sent) == nil, "\(name) \(sent)")
                let expected = kept ?? sent
                let rows = try connection.query(
                    """
                    UPDATE v SET \(column.sqlName) = $1 \
                    RETURNING \(column.selected), \(column.sqlName)::text
                    """, [column.parameter(for: sent)])
                #expect(try column.value(from: rows, 0, 0) == expected, "\(name) \(sent)")
                // The kit's form of moments and numbers is PostgreSQL's own.
                if case .text(let text) = expected, ![.binary].contains(column.form), name != "c" {
                    #expect(try rows.text(0, 1) == text)
                }
                // A value given as text means the same.
                let cast = try connection.query(
                    "SELECT \(column.sqlName) IS NOT DISTINCT FROM $1::text::\(column.declaration)"
                        .replacing("j IS", with: "j IS").replacing(
                            "\"j\" IS NOT DISTINCT FROM $1::text::json",
                            with: "\"j\"::text = $1::text")
                        + " FROM v", [column.parameterText(for: sent).map { .text($0) } ?? .null])
                #expect(try cast.boolean(0, 0), "\(name) \(sent)")
                // What the drain of other programs' writes reads is the same, too.
                try TableRows(table, on: connection).forEach(unsendable: { throw $1 }) { id, row in
                    #expect(row[name] == expected)
                    let drained = try connection.query(
                        """
                        SELECT f.row FROM (SELECT \(table.number)::bigint AS type, '1' AS id) AS c, \
                        LATERAL (\(ExternalRowCodec(table, at: 0).lookup(of: "c"))) AS f
                        """)
                    if case .array(let texts) = try drained.value(0, 0) {
                        #expect(
                            ExternalRowCodec(table, at: 0).row(texts) == .present(row), "\(name)")
                    }
                    let number = RecordID.integer(Int64(index + 1))
                    try records.insert(number, row, absentMeansNull: true)
                    #expect(try records.read(number) == row, "\(name) \(sent)")
                    let stored = try device.prepare(
                        "SELECT \(hasher.columns) FROM v WHERE id = \(index + 1)")
                    defer { stored.reset() }
                    #expect(try stored.step())
                    #expect(hasher.hash(stored) == hasher.hash(number, row))
                    #expect(row.names == names)
                }
                try connection.execute("UPDATE v SET \(column.sqlName) = NULL")
            }
        }
    }

    @Test("are refused early where PostgreSQL would refuse them, and where it would not say so")
    func refusedFormsEarly() async throws {
        let database = try await TestDatabase.make()
        try await database.connected { connection in
            try connection.execute(Self.table)
            try connection.register(["v"])
            let schema = try PostgresSchema.read(connection)
            let columns = Dictionary(
                uniqueKeysWithValues: schema.tables[0].columns.map { ($0.name, $0) })
            let refused: [(String, Value, String)] = [
                ("i2", .integer(32_768), "an integer of 2 bytes"),
                ("i4", .integer(-2_147_483_649), "an integer of 4 bytes"),
                ("i4", .real(1.5), "expected an integer"), ("i8", .text("1"), "found text"),
                ("b", .integer(1), "expected true or false"),
                ("r", .real(3.5e38), "out of its range"), ("r", .real(1e-50), "out of its range"),
                ("d", .real(.infinity), "finite"), ("d", .real(.nan), "finite"),
                ("n", .text("1e5"), "decimal number"), ("n", .text("1."), "decimal number"),
                ("n", .real(1.5), "decimal number"), ("t", .text("a\0b"), "without NUL"),
                ("t", .boolean(true), "expected text"),
                ("vc", .text("123456"), "at most 5 characters"),
                ("c", .text("abcde"), "at most 4"), ("da", .text("31.1.2026"), "a date"),
                ("da", .text("today"), "a date"), ("ti", .text("9"), "a time"),
                ("ti", .text("now"), "a time"), ("ts", .text("2026-01-31"), "a date and time"),
                ("ts", .text("2026-01-31 10:00:00+02"), "a date and time"),
                ("tz", .text("2026-01-31 10:00:00"), "zone"),
                ("u", .text("0B5A6F0E-8A2C-4B52-9D5C-3F1F5B6A7C8D"), "lower case"),
                ("u", .text("{0b5a6f0e-8a2c-4b52-9d5c-3f1f5b6a7c8}"), "UUID"),
                ("by", .text("=="), "base64"), ("ia", .text("1,2"), "an array"),
            ]
            for (name, value, words) in refused {
                let mismatch = columns[name]?.mismatch(value)
                #expect(mismatch?.contains(words) == true, "\(name) \(value) \(mismatch ?? "")")
            }
            // What nobody said early, PostgreSQL says.
            for (name, value) in [
                ("da", Value.text("2026-02-30")), ("jb", .text("{")), ("m", .text("good")),
                ("p", .text("101")), ("ia", .text("{a}")), ("n2", .text("123456789")),
            ] {
                let column = try #require(columns[name])
                #expect(column.mismatch(value) == nil)
                #expect(throws: PostgresError.self) {
                    _ = try connection.query(
                        "UPDATE v SET \(name) = $1", [column.parameter(for: value)])
                }
            }
            let checks = schema.checks
            let type = schema.schema.types[0]
            #expect(checks.id(.integer(-5), type) == nil)
            #expect(checks.id(.integer(0), type) != nil)
            #expect(checks.id(.text("x"), type) != nil)
            let attribute = try #require(type[attribute: "i2"])
            #expect(checks.value(.integer(40_000), attribute, type) != nil)
        }
    }

    @Test("that no device can be sent are told of")
    func unsendableForms() async throws {
        let database = try await TestDatabase.make()
        try await database.connected { connection in
            try connection.execute(Self.table)
            try connection.register(["v"])
            let schema = try PostgresSchema.read(connection)
            try connection.execute("UPDATE v SET r = 'NaN'")
            try connection.execute("INSERT INTO v (d) VALUES ('-Infinity')")
            var told: [String] = []
            try TableRows(schema.tables[0], on: connection).forEach(
                unsendable: { told.append("\($0) \($1)") }, { _, _ in })
            #expect(
                told == [
                    "1 column “r” holds NaN or an infinity, which no device can be sent",
                    "2 column “d” holds NaN or an infinity, which no device can be sent",
                ])
        }
    }

    @Test("as ids of uuid and short keys are judged as PostgreSQL keeps them")
    func ids() async throws {
        let database = try await TestDatabase.make()
        try await database.connected { connection in
            try connection.execute(
                """
                CREATE TABLE a (id uuid PRIMARY KEY); CREATE TABLE b (id varchar(3) PRIMARY KEY);
                CREATE TABLE c (id smallserial PRIMARY KEY, up smallint REFERENCES c);
                """)
            try connection.register(["a", "b", "c"])
            let schema = try PostgresSchema.read(connection)
            let checks = schema.checks
            let types = schema.schema.types
            #expect(checks.id(.text("0b5a6f0e-8a2c-4b52-9d5c-3f1f5b6a7c8d"), types[0]) == nil)
            #expect(checks.id(.text("0B5A6F0E-8A2C-4B52-9D5C-3F1F5B6A7C8D"), types[0]) != nil)
            #expect(checks.id(.text("abc"), types[1]) == nil)
            #expect(checks.id(.text("abcd"), types[1]) != nil)
            #expect(checks.id(.text("abc "), types[1]) != nil)
            #expect(checks.id(.integer(40_000), types[2]) != nil)
            let up = types[2].attributes[0]
            // A device's own id, which is replaced before it is written.
            #expect(checks.value(.integer(-40_000), up, types[2]) == nil)
            #expect(checks.value(.integer(40_000), up, types[2]) != nil)
        }
    }
}
