import Martlet
internal import MartletModel
import MartletPostgres
import MartletServer
import PostgresKit
import Testing
import Waiting

@Suite("Values of PostgreSQL's types between devices", .timeLimit(.minutes(3)))
struct TypeTests {
    private static let script = """
        CREATE TYPE mood AS ENUM ('bad', 'it''s fine');
        CREATE DOMAIN percent AS numeric(5, 2) CHECK (VALUE BETWEEN 0 AND 100);
        CREATE TABLE v (id uuid PRIMARY KEY, i2 smallint, i4 integer, i8 bigint, b boolean,
            r real, d double precision, n numeric, n2 numeric(10, 2), t text, vc varchar(5), c char(4),
            da date, ti time, ts timestamp, tz timestamptz, u uuid, "by" bytea, j json, jb jsonb,
            ta text[], ia integer[], ba bigint[], m mood, p percent,
            twice integer GENERATED ALWAYS AS (i4 * 2) STORED, made timestamptz NOT NULL DEFAULT now());
        """

    /// A column, what a device writes, and what all have afterwards where that is another form.
    private static let values: [(String, SQLValue, SQLValue?)] = [
        ("i2", .integer(-32_768), nil), ("i4", .integer(1_000_000_000), nil),
        ("i8", .integer(.min), nil), ("b", true, nil), ("b", false, nil),
        ("r", .real(0.1), nil), ("d", .real(0.1), nil), ("d", .real(.greatestFiniteMagnitude), nil),
        ("n", .text("-12345.678900"), nil),
        ("n", .text("123456789012345678901234567890.00010"), nil),
        ("n2", .text("1.005"), .text("1.01")),
        ("t", .text(""), nil), ("t", .text("é\u{301}\n\\\"'{}𐀀"), nil),
        ("vc", .text("ÄÖÜßé"), nil), ("c", .text("ab"), .text("ab  ")),
        ("da", .text("2026-01-31"), nil), ("ti", .text("09:30"), .text("09:30:00")),
        ("ts", .text("2026-01-31T09:30:00.120Z"), .text("2026-01-31 09:30:00.12")),
        ("tz", .text("2026-01-31T09:30:00.000Z"), .text("2026-01-31 09:30:00+00")),
        ("u", .text("0b5a6f0e-8a2c-4b52-9d5c-3f1f5b6a7c8d"), nil),
        ("by", .blob([0, 1, 2, 255]), nil), ("by", .blob([]), nil),
        ("j", .text("{\"b\": 1,  \"a\":1.50}"), nil), ("j", .text("1.0"), nil),
        ("jb", .text("{\"b\":1,  \"a\":1.50}"), .text("{\"a\": 1.50, \"b\": 1}")),
        ("ta", .text("{a,\"b c\",NULL,\"\",\"NULL\",\"q\\\"\\\\\"}"), nil),
        ("ia", .text("{1,-2,NULL}"), nil),
        ("ba", .text("{ 9223372036854775807 }"), .text("{9223372036854775807}")),
        ("m", .text("it's fine"), nil), ("p", .text("99.9"), .text("99.90")),
    ]

    @Test("are the same on every device and in the table, created and changed")
    func everyType() async throws {
        let database = try await ServedDatabase(dataSet: nil)
        try await database.program { connection in
            _ = try PostgresInit(on: connection, now: 0).make(Self.script, name: "team")
        }
        let port = try await database.start()
        let writer = try await database.device("writer", port)
        let reader = try await database.device("reader", port)
        try await writer.sync()
        for isChange in [false, true] {
            for (index, (name, value, _)) in Self.values.enumerated() {
                try await writer.write { context in
                    _ = try context.insert(
                        "v", isChange ? [:] : [name: value], id: Self.id(index, isChange))
                }
            }
            try await writer.sync()
            guard isChange else { continue }
            for (index, (name, value, _)) in Self.values.enumerated() {
                try await writer.write { context in
                    _ = try context.update(
                        "v", .text(Self.id(index, isChange)), [name: value])
                }
            }
            try await writer.sync()
        }
        try await reader.sync()
        for device in [writer, reader] {
            let parked = try await device.parked().count
            #expect(parked == 0)
            for isChange in [false, true] {
                for (index, (name, value, kept)) in Self.values.enumerated() {
                    let rows = try await device.read { context in
                        try context.rows(
                            "SELECT \"\(name)\", twice, made FROM v WHERE id = '\(Self.id(index, isChange))'"
                        )
                    }
                    #expect(
                        rows.first?[name] == kept ?? value,
                        "\(name) \(value) \(isChange)")
                    #expect(rows.first?["made"] != .null)
                    if name == "i4" { #expect(rows.first?["twice"] == .integer(2_000_000_000)) }
                }
            }
        }
        await writer.close()
        await reader.close()
        await database.stop()
    }

    private static func id(_ index: Int, _ isChange: Bool) -> String {
        let digits = String(index + (isChange ? 1_000 : 0))
        return "00000000-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.count)
            + digits
    }
}
