import Foundation
import MartletModel
import MartletStore
import Testing

@Suite("Column values", .timeLimit(.minutes(5)))
struct ColumnValueTests {
    enum Colour: String, ColumnValue { case red, blue }
    enum Level: Int, ColumnValue { case low = 1, high = 9 }

    /// Writes values into a column without a type and reads them back.
    private func roundTrip<Value: ColumnValue & Equatable>(
        _ values: [Value], sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: "CREATE TABLE t(id INTEGER PRIMARY KEY, v)")
        try await pool.write { context in
            for value in values {
                _ = try context.rows("INSERT INTO t(v) VALUES (?)", [value.sqlValue])
            }
        }
        let read = try await pool.read { context in
            var read: [Value] = []
            try context.forEachRow("SELECT v FROM t ORDER BY id") { read.append(try $0.get("v")) }
            return read
        }
        #expect(read == values, sourceLocation: sourceLocation)
        // The way by values gives the same.
        let throughValues = try await pool.read { context in
            try context.rows("SELECT v FROM t ORDER BY id").map {
                try $0.value("v", as: Value.self)
            }
        }
        #expect(throughValues == values, sourceLocation: sourceLocation)
    }

    @Test("integers of every width, at their limits")
    func integers() async throws {
        try await roundTrip([Int.min, -1, 0, 1, Int.max])
        try await roundTrip([Int64.min, Int64.max])
        try await roundTrip([Int32.min, Int32.max])
        try await roundTrip([Int16.min, Int16.max])
        try await roundTrip([Int8.min, Int8.max])
        try await roundTrip([UInt.min, UInt.max])
        try await roundTrip([UInt64.min, UInt64(Int64.max), UInt64(Int64.max) + 1, UInt64.max])
        try await roundTrip([UInt32.min, UInt32.max])
        try await roundTrip([UInt16.min, UInt16.max])
        try await roundTrip([UInt8.min, UInt8.max])
    }

    @Test("real numbers, infinities; NaN is null")
    func reals() async throws {
        try await roundTrip([
            0.1, -0.0, .leastNonzeroMagnitude, .greatestFiniteMagnitude, .infinity, -.infinity,
            Double.pi,
        ])
        try await roundTrip([
            Float.pi, .leastNonzeroMagnitude, .greatestFiniteMagnitude, -.infinity,
        ])
        #expect(Double.nan.sqlValue == .null)
        #expect(Float.nan.sqlValue == .null)
        // SQLite itself turns a NaN that comes to it into null.
        try await roundTrip([Double?.none])
    }

    @Test("booleans, texts, bytes")
    func textsInSettings() async throws {
        try await roundTrip([true, false])
        try await roundTrip([
            "", "a", "ß 東京 🏉", "e\u{301}", "\u{e9}", "'; DROP TABLE t; --", "\u{1}\u{7f}", "1",
            "1.0",
        ])
        try await roundTrip([[], [0], [0, 255, 0], Array(repeating: UInt8(7), count: 100_000)])
        try await roundTrip([Data(), Data([0, 1, 2, 255])])
        try await roundTrip([String(repeating: "x", count: 1_000_000)])
    }

    @Test("composed and decomposed text stay what they are")
    func normalization() async throws {
        let composed = SQLValue.text("\u{e9}")
        let decomposed = SQLValue.text("e\u{301}")
        #expect(composed != decomposed)
        try await roundTrip([composed, decomposed])
    }

    @Test("dates, before 1970 and beyond the years that have a text")
    func dates() async throws {
        let seconds: [Double] = [
            0, 1, -1, 1_763_715_600.123, -0.001, -86_400.999, -62_135_596_800, 253_402_300_799.999,
            -62_135_596_800.001, 253_402_300_800, 1e15, -1e15, 951_782_400, -2_203_891_200,
        ]
        try await roundTrip(seconds.map { Date(timeIntervalSince1970: $0) })
        try await roundTrip([Date.distantPast, Date.distantFuture])
        #expect(
            Date(timeIntervalSince1970: -1.5).sqlValue == .text("1969-12-31T23:59:58.500Z"))
        // What is finer than a millisecond is rounded.
        let fine = try Date(sqlValue: Date(timeIntervalSince1970: 0.000_6).sqlValue)
        #expect(fine == Date(timeIntervalSince1970: 0.001))
    }

    @Test(
        "dates as SQLite and other programs write them",
        arguments: [
            ("2026-01-31", 1_769_817_600), ("2026-01-31 09:30:00", 1_769_851_800),
            ("2026-01-31T09:30", 1_769_851_800), ("2026-01-31T09:30:00.250Z", 1_769_851_800.25),
            ("2026-01-31T11:30:00+02:00", 1_769_851_800),
            ("2026-01-31T04:00:00-05:30", 1_769_851_800), ("0001-01-01", -62_135_596_800),
            ("2024-02-29", 1_709_164_800),
        ])
    func dateTexts(_ text: String, _ seconds: Double) throws {
        #expect(try Date(sqlValue: .text(text)) == Date(timeIntervalSince1970: seconds))
    }

    @Test("dates as numbers of seconds")
    func dateNumbers() throws {
        #expect(try Date(sqlValue: 1.5) == Date(timeIntervalSince1970: 1.5))
        #expect(try Date(sqlValue: -3) == Date(timeIntervalSince1970: -3))
    }

    @Test(
        "what is no date is refused",
        arguments: [
            "", "x", "2026-13-01", "2026-02-29", "2026-01-31T24:00:00Z", "2026-1-1", "2026-01-31 ",
            "2026-01-31T09:30:00+2", "10000-01-01", "2026-01-31T09:30:00.Z", "20260131",
        ])
    func wrongDates(_ text: String) async {
        #expect(await refusal { try Date(sqlValue: .text(text)) }?.kind == .value)
    }

    @Test("UUIDs as text and as 16 bytes")
    func uuids() async throws {
        let uuid = try #require(UUID(uuidString: "0F8FAD5B-D9CB-469F-A165-70867728950E"))
        try await roundTrip([uuid])
        #expect(uuid.sqlValue == "0f8fad5b-d9cb-469f-a165-70867728950e")
        let bytes = withUnsafeBytes(of: uuid.uuid) { [UInt8]($0) }
        #expect(try UUID(sqlValue: .blob(bytes)) == uuid)
        for wrong in [SQLValue.text("0f8fad5b"), .blob([1, 2]), .integer(1), .null] {
            #expect(await refusal { try UUID(sqlValue: wrong) }?.kind == .value)
        }
    }

    @Test("decimal numbers exactly, and URLs")
    func decimalsAndURLs() async throws {
        let texts = ["0.1", "-12.50", "123456789012345678901234567890.5", "1e-20"]
        try await roundTrip(texts.compactMap { Decimal(string: $0) })
        #expect(try Decimal(sqlValue: 0.1) == Decimal(string: "0.1"))
        #expect(try Decimal(sqlValue: 7) == 7)
        for wrong in [SQLValue.text("x"), .text("12x"), .real(.infinity), .null] {
            #expect(await refusal { try Decimal(sqlValue: wrong) }?.kind == .value)
        }
        try await roundTrip([try #require(URL(string: "https://example.org/a?b=c#d"))])
    }

    @Test("enumerations by their raw values; unknown ones are refused")
    func enumerations() async throws {
        try await roundTrip([Colour.red, .blue])
        try await roundTrip([Level.low, .high])
        #expect(await refusal { try Colour(sqlValue: "green") }?.kind == .value)
        #expect(await refusal { try Level(sqlValue: 2) }?.kind == .value)
    }

    @Test("optionals and ids")
    func optionals() async throws {
        try await roundTrip([Int?.none, 5])
        try await roundTrip([String?.none, "", "a"])
        try await roundTrip([Date?.none, Date(timeIntervalSince1970: 0)])
        try await roundTrip([Colour?.none, .red])
        try await roundTrip([RecordID.integer(-1), .text("a")])
    }

    @Test("a value of another kind is refused, and the sentence hides it")
    func mismatches() async throws {
        let secret = SQLValue.text("secret")
        let errors = [
            await refusal { try Int(sqlValue: secret) },
            await refusal { try Double(sqlValue: secret) },
            await refusal { try Bool(sqlValue: secret) },
            await refusal { try Data(sqlValue: secret) },
            await refusal { try Date(sqlValue: secret) },
            await refusal { try UUID(sqlValue: secret) },
            await refusal { try Colour(sqlValue: secret) },
            await refusal { try Decimal(sqlValue: secret) },
            await refusal { try Int8(sqlValue: 128) }, await refusal { try UInt(sqlValue: -1) },
            await refusal { try Int(sqlValue: 1.5) }, await refusal { try Bool(sqlValue: 2) },
            await refusal { try String(sqlValue: .null) },
            await refusal { try Int(sqlValue: .null) },
            await refusal { try RecordID(sqlValue: 1.5) },
        ]
        for error in errors {
            #expect(error?.kind == .value)
            #expect(error?.description.contains("secret") == false)
        }
    }

    @Test("a refusal names the column")
    func namedColumn() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool()
        let error = await refusal {
            try await pool.read { context in
                try context.forEachRow("SELECT 'secret' AS shirt") { row in
                    _ = try row.get("shirt", as: Int.self)
                }
            }
        }
        #expect(error?.kind == .value)
        #expect(error?.message.contains("shirt") == true)
        #expect(error?.message.contains("secret") == false)
    }

    @Test("a column that is not there is refused")
    func noColumn() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool()
        try await pool.read { context in
            try context.forEachRow("SELECT 1 AS a") { row in
                #expect(throws: StoreError.self) { try row.get("b", as: Int?.self) }
                #expect(throws: StoreError.self) { try row.get(at: 1, as: Int?.self) }
                #expect(throws: StoreError.self) { try row.get(at: -1, as: Int?.self) }
                #expect(throws: StoreError.self) { try row.value(at: 1) }
                let isNull = row.isNull(at: 1)
                #expect(isNull)
            }
        }
    }
}
