import PostgresKit
import Testing

@Suite("Values")
struct ValueTests {
    /// Type, and what PostgreSQL takes for it in text.
    private static let samples: [(type: String, texts: [String])] = [
        ("boolean", ["t", "f"]),
        ("smallint", ["-32768", "0", "32767"]),
        ("integer", ["-2147483648", "1", "2147483647"]),
        ("bigint", ["-9223372036854775808", "9007199254740993", "9223372036854775807"]),
        ("text", ["", "a", "Žluťoučký \u{1F426}\r\n\t", "'; DROP TABLE x; --", "NULL", "\\x41"]),
        ("varchar(20)", ["", "Martlet", "  kept  "]),
        ("char(5)", ["a    ", "abcde"]),
        ("real", ["0", "-0", "1.5", "3.4028235e+38", "1e-45", "NaN", "Infinity", "-Infinity"]),
        (
            "double precision",
            ["0", "-0", "0.1", "1.7976931348623157e+308", "5e-324", "NaN", "-Infinity"]
        ),
        (
            "numeric",
            [
                "0", "0.00", "1.10", "-1.10", "10000", "99999999", "0.0001", "0.00010000",
                "-0.000000000000000000001", "12345678901234567890.12345678901234567890", "1e50",
                "NaN", "Infinity", "-Infinity", "100000000000000000000",
            ]
        ),
        ("numeric(12,4)", ["1.1", "-99999999.9999", "0"]),
        (
            "date",
            [
                "2000-01-01", "1999-12-31", "2024-02-29", "1900-02-28", "0001-01-01",
                "0001-12-31 BC", "4713-01-01 BC", "5874897-12-31", "infinity", "-infinity",
            ]
        ),
        ("time", ["00:00:00", "09:12:44.12", "23:59:59.999999", "24:00:00"]),
        (
            "timestamp",
            [
                "2026-11-21 09:12:44.12", "1999-12-31 23:59:59.999999", "1582-10-15 00:00:00",
                "0044-03-15 12:00:00 BC", "294276-12-31 23:59:59.999999", "infinity", "-infinity",
            ]
        ),
        (
            "timestamptz",
            [
                "2026-11-21 09:12:44.12+00", "2026-11-21 09:12:44+05:30", "0001-01-01 00:00:00+00",
                "infinity",
            ]
        ),
        (
            "uuid",
            [
                "00000000-0000-0000-0000-000000000000", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
            ]
        ),
        ("bytea", ["\\x", "\\x00ff80", "\\x5c27"]),
        ("json", ["{\"b\" : 1,  \"a\":[1.0, null]}", "null", "\"\\u0041\""]),
        ("jsonb", ["{\"b\" : 1,  \"a\":[1.0, null]}", "12345678901234567890.10", "\"Ž\""]),
        (
            "text[]",
            [
                "{}", "{a}", "{\"\",NULL,\"NULL\",\"a b\",\"c\\\"d\",\"e\\\\f\",\"{,}\"}",
                "{{a,b},{c,d}}", "[2:3]={x,y}", "{Ž,\"\r\n\"}",
            ]
        ),
        ("integer[]", ["{}", "{1,NULL,-3}", "{{1,2},{3,4}}"]),
        ("bigint[]", ["{9223372036854775807}"]),
        ("smallint[]", ["{1,-1}"]),
        ("boolean[]", ["{t,f,NULL}"]),
        ("numeric[]", ["{1.10,NaN}"]),
        ("uuid[]", ["{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}"]),
        ("timestamptz[]", ["{\"2026-11-21 09:12:44.12+00\"}"]),
        ("bytea[]", ["{\"\\\\x00ff\"}"]),
        ("oid", ["4294967295"]),
    ]

    @Test("each type comes and goes exactly, and reads as PostgreSQL writes it")
    func roundTripOfPostgresTypes() async throws {
        let different = try await TestServer.connected { connection in
            var different: [String] = []
            for (type, texts) in Self.samples {
                for text in texts {
                    let found = try Self.check(connection, type, .text(text))
                    if let found { different.append("\(type) \(text): \(found)") }
                }
            }
            return different
        }
        #expect(different == [])
    }

    /// - Returns: What differs, nil when nothing does.
    private static func check(
        _ connection: PostgresConnection, _ type: String, _ given: PostgresValue
    ) throws -> String? {
        // json cannot be compared, and a float's text leaves nothing out.
        let rows = try connection.query(
            "SELECT ($1::text)::\(type), (($1::text)::\(type))::text", [given])
        let value = try rows.value(0, 0)
        let text = try rows.text(0, 1)
        if type != "boolean", !type.hasPrefix("char"), value.text != text,
            try connection.query("SELECT ($1::text)::\(type)::text", [.text(value.text ?? "")])
                .text(0, 0) != text
        {
            return "read as \(value.text ?? "nil"), PostgreSQL writes \(text)"
        }
        let back = try connection.query(
            "SELECT $1::\(type), ($1::\(type))::text", [value])
        guard try back.value(0, 0).text == value.text, try back.text(0, 1) == text else {
            return "came back as \(try back.text(0, 1)), not \(text)"
        }
        return nil
    }

    @Test("moments and numerics read to the letter as PostgreSQL writes them")
    func letters() async throws {
        let different = try await TestServer.connected { connection in
            let rows = try connection.query(
                """
                SELECT n, n::text, d, d::text, t, t::text, z, z::text, c, c::text FROM (
                    SELECT ((random() - 0.5) * power(10, i % 30))::numeric * 1.000000000::numeric AS n,
                        date '0001-01-01' + (random() * 3000000 - 1000000)::integer AS d,
                        timestamp '2000-01-01' + (random() - 0.3) * interval '4000 years' AS t,
                        timestamptz '2000-01-01' + (random() - 0.3) * interval '4000 years' AS z,
                        time '00:00' + random() * interval '86399 seconds' AS c
                    FROM generate_series(1, 2000) i) s
                """)
            var different: [String] = []
            for row in 0..<rows.count {
                for column in stride(from: 0, to: rows.columnCount, by: 2) {
                    let ours = try rows.value(row, column).text
                    let theirs = try rows.text(row, column + 1)
                    if ours != theirs { different.append("\(ours ?? "nil"), not \(theirs)") }
                }
            }
            return Array(different.prefix(10))
        }
        #expect(different == [])
    }

    @Test("columns of a table, its enumerations, domains and arrays of them")
    func ownTypes() async throws {
        let name = TestServer.name("types")
        let rows = try await TestServer.connected { connection in
            try connection.execute(
                """
                CREATE SCHEMA \(name); SET search_path = \(name);
                CREATE TYPE mood AS ENUM ('glad', 'sad ''n'' sorry');
                CREATE DOMAIN age AS integer CHECK (VALUE > 0);
                CREATE DOMAIN young AS age CHECK (VALUE < 30);
                CREATE TABLE people (id bigint GENERATED ALWAYS AS IDENTITY, mood mood, age young,
                    moods mood[], ages age[], place point)
                """)
            let insert =
                "INSERT INTO people (mood, age, moods, ages) VALUES ($1, $2, $3, $4) RETURNING id"
            _ = try connection.query(
                insert,
                [
                    .text("glad"), .integer(7),
                    .array(PostgresArray([.text("sad 'n' sorry"), .null])),
                    .array(PostgresArray([.integer(5)])),
                ])
            let read = try connection.query("SELECT mood, age, moods, ages FROM people").values()
            let wrong = try TestServer.error {
                _ = try connection.query(insert, [.text("bored"), .null, .null, .null])
            }
            #expect(wrong.kind == .invalidValue)
            #expect(!wrong.description.contains("bored"))
            let old = try TestServer.error {
                _ = try connection.query(insert, [.null, .integer(70), .null, .null])
            }
            #expect(old.isCheckViolation)
            _ = try connection.query("UPDATE people SET place = '(1,2)'")
            guard case .other = try connection.query("SELECT place FROM people").value(0, 0) else {
                throw NoError()
            }
            try connection.execute("DROP SCHEMA \(name) CASCADE")
            return read
        }
        #expect(
            rows == [
                [
                    .text("glad"), .integer(7),
                    .array(PostgresArray([.text("sad 'n' sorry"), .null])),
                    .array(PostgresArray([.integer(5)])),
                ]
            ])
    }

    @Test("what a type cannot hold is refused before it is sent")
    func refusedValueOfType() async throws {
        let kinds = try await TestServer.connected { connection in
            try [
                ("SELECT $1::smallint", PostgresValue.integer(32_768)),
                ("SELECT $1::integer", .integer(1 << 31)), ("SELECT $1::oid", .integer(-1)),
                ("SELECT $1::text", .text("a\0b")), ("SELECT $1::text", .binary([1])),
                ("SELECT $1::integer", .text("one")), ("SELECT $1::date", .text("soon")),
            ].map { sql, value in
                try TestServer.error { _ = try connection.query(sql, [value]) }.kind
            }
        }
        #expect(kinds == Array(repeating: .invalidValue, count: 7))
    }

    @Test("a number of values other than that of parameters is a misuse")
    func count() async throws {
        let error = try await TestServer.connected { connection in
            try TestServer.error { _ = try connection.query("SELECT $1::integer + $2", [.null]) }
        }
        #expect(error.kind == .misuse)
    }

    @Test("large values")
    func largeValues() async throws {
        let same = try await TestServer.connected { connection in
            let bytes = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            return try connection.query("SELECT $1::bytea", [.binary(bytes)]).binary(0, 0) == bytes
        }
        #expect(same)
    }
}
