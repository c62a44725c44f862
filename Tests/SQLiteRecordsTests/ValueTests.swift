import MartletModel
import SQLiteKit
import SQLiteRecords
import Testing

@Suite("Values in columns")
struct ValueTests {
    @Test(
        "a value that suits its kind is taken",
        arguments: [
            (.null, .integer), (.null, .blob), (.integer(1), .integer), (.integer(1), .real),
            (.integer(1), .any), (.real(0.5), .real), (.real(0.5), .any), (.text("x"), .text),
            (.text("x"), .any), (.text(""), .blob), (.text("QQ=="), .blob), (.text("QUI="), .blob),
            (.text("QUJD"), .blob), (.boolean(true), .boolean), (.text("0"), .numeric),
            (.text("-0.50"), .numeric), (.text("9223372036854775807"), .numeric),
            (.text("123456789012.345"), .numeric), (.text("1000000000000000000000"), .numeric),
            (.text("0.000000000000001"), .numeric), (.text("12.000000000000000000"), .numeric),
        ] as [(Value, AttributeKind)])
    func suits(value: Value, kind: AttributeKind) {
        #expect(RecordTable.mismatch(value, Attribute(name: "a", kind: kind)) == nil)
    }

    @Test(
        "a value that does not suit its kind is refused in a sentence without it",
        arguments: [
            (.text("secret"), .integer, "expected an integer, found text"),
            (.real(1.5), .integer, "found a number with"), (.boolean(true), .integer, "true or"),
            (.text("secret"), .real, "expected a number"), (.real(.infinity), .real, "finite"),
            (.real(.nan), .any, "finite"), (.integer(1), .text, "expected text"),
            (.text("a\u{0}b"), .text, "NUL"), (.text("a\u{0}b"), .any, "NUL"),
            (.boolean(true), .any, "found true or false"), (.integer(1), .boolean, "true or false"),
            (.text("secret!"), .blob, "base64"), (.text("QQ="), .blob, "base64"),
            (.text("QR=="), .blob, "base64"), (.text("QUJ="), .blob, "base64"),
            (.text("Q==="), .blob, "base64"), (.text("===="), .blob, "base64"),
            (.text("Q=Q="), .blob, "base64"), (.text("QUJD\n"), .blob, "base64"),
            (.text("QU-_"), .blob, "base64"), (.integer(1), .blob, "base64"),
            (.integer(1), .numeric, "decimal number as text"), (.text(""), .numeric, "decimal"),
            (.text("-"), .numeric, "decimal"), (.text("1."), .numeric, "decimal"),
            (.text(".5"), .numeric, "decimal"), (.text("1e5"), .numeric, "decimal"),
            (.text("+1"), .numeric, "decimal"), (.text(" 1"), .numeric, "decimal"),
            (.text("1.2.3"), .numeric, "decimal"), (.text("--1"), .numeric, "decimal"),
            (.text("1234567890.1234567"), .numeric, "15 significant digits, found 17"),
            (.text("9223372036854775809"), .numeric, "found 19"),
            (.text(String(repeating: "1", count: 70)), .numeric, "longer"),
        ] as [(Value, AttributeKind, String)])
    func refusedValueOfKind(value: Value, kind: AttributeKind, sentence: String) {
        let found = RecordTable.mismatch(value, Attribute(name: "a", kind: kind))
        #expect(found?.contains(sentence) == true, "\(found ?? "none")")
        #expect(found?.contains("secret") != true)
    }

    @Test("text that is not base64 is never stored in a BLOB column")
    func refusedBinding() throws {
        let connection = try Connection(path: ":memory:")
        try connection.execute("CREATE TABLE t(a BLOB)")
        let insert = try connection.prepare("INSERT INTO t VALUES (?1)")
        insert.bind(1, .text("AB=="), kind: .blob)
        let error = #expect(throws: SQLiteError.self) { try insert.run() }
        #expect(error?.isMismatch == true)
        insert.reset()
        insert.bind(1, .text("AA=="), kind: .blob)
        try insert.run()
        #expect(try connection.text("SELECT group_concat(quote(a)) FROM t") == "X'00'")
    }

    @Test("an id must suit the type's key")
    func ids() {
        let integers = EntityType(name: "t", key: "id", keyKind: .integer, attributes: [])
        let texts = EntityType(name: "t", key: "id", keyKind: .text, attributes: [])
        #expect(RecordTable.mismatch(.integer(-1), integers) == nil)
        #expect(RecordTable.mismatch(.text("u"), texts) == nil)
        #expect(RecordTable.mismatch(.integer(0), integers) != nil)
        #expect(RecordTable.mismatch(.text("1"), integers) != nil)
        #expect(RecordTable.mismatch(.integer(1), texts) != nil)
        #expect(RecordTable.mismatch(.text(""), texts) != nil)
        #expect(RecordTable.mismatch(.text("\u{0}"), texts) != nil)
    }

    private func read(_ expression: String, _ kind: AttributeKind) throws -> Value {
        let connection = try Connection(path: ":memory:")
        let statement = try connection.statement("SELECT \(expression) AS c")
        _ = try statement.step()
        return try statement.value(0, kind: kind)
    }

    @Test(
        "a decimal reads as its shortest text",
        arguments: [
            ("12.50", "12.5"), ("1e20", "100000000000000000000"), ("1.5e-7", "0.00000015"),
            ("-2.5e17", "-250000000000000000"), ("0.1", "0.1"), ("3.0", "3"), ("-0.0", "0"),
            ("7", "7"), ("'1.50'", "1.50"), ("123456789012.345", "123456789012.345"),
        ])
    func decimals(stored: String, text: String) throws {
        #expect(try read(stored, .numeric) == .text(text))
    }

    @Test("every decimal that is taken comes back as the same number")
    func decimalRoundTrip() throws {
        let connection = try Connection(path: ":memory:")
        try connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n NUMERIC)")
        let type = try #require(try SchemaReader.read(connection)["t"])
        let table = RecordTable(type: type, connection: connection)
        var state: UInt64 = 42
        for id in 1...2_000 as ClosedRange<Int64> {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let whole = (state >> 20) % 100_000_000
            let fraction = String(1_000_000 + (state >> 33) % 900_000).dropFirst()
            let text = "\(state >> 63 == 0 ? "-" : "")\(whole).\(fraction)1"
            #expect(RecordTable.mismatch(.text(text), type.attributes[0]) == nil)
            let stored = try table.insertReturning(
                .integer(id), Attributes(names: ["n"], values: [.text(text)]),
                absentMeansNull: true)
            #expect(stored["n"] == .text(text))
        }
    }

    @Test("a column that is declared NUMERIC TEXT keeps every digit, and only numbers")
    func exactDecimals() throws {
        let connection = try Connection(path: ":memory:")
        try connection.execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, n NUMERIC TEXT, m NUMERIC, i NUMERIC INT TEXT)"
        )
        let type = try #require(try SchemaReader.read(connection)["t"])
        #expect(type.attributes.map(\.kind) == [.numeric, .numeric, .numeric])
        #expect(type.attributes.map(\.keepsDigits) == [true, false, false])
        let long = Value.text("-123456789012345678901234567890.12300")
        #expect(RecordTable.mismatch(long, type.attributes[0]) == nil)
        #expect(RecordTable.mismatch(long, type.attributes[1]) != nil)
        for text in ["1e5", ".5", "5.", "", "-", "NaN", String(repeating: "1", count: 1_001)] {
            #expect(RecordTable.mismatch(.text(text), type.attributes[0]) != nil)
        }
        let table = RecordTable(type: type, connection: connection)
        let stored = try table.insertReturning(
            .integer(1), Attributes(names: ["n"], values: [long]), absentMeansNull: true)
        #expect(stored["n"] == long)
    }

    @Test("what other programs stored against the kind comes out as it is")
    func against() throws {
        #expect(try read("'abc'", .integer) == .text("abc"))
        #expect(try read("1.5", .integer) == .real(1.5))
        #expect(try read("2", .boolean) == .integer(2))
        #expect(try read("12", .text) == .text("12"))
        #expect(try read("'abc'", .blob) == .text("YWJj"))
        #expect(try read("12", .blob) == .text("MTI="))
    }

    @Test("what the wire cannot carry is an error, never repaired")
    func unreadable() {
        for (stored, kind) in [
            ("CAST(x'ff' AS TEXT)", AttributeKind.text), ("x'00'", .text), ("x'00'", .any),
            ("9e999", .real), ("-9e999", .numeric),
        ] {
            let error = #expect(throws: SQLiteError.self, "\(stored)") { try read(stored, kind) }
            #expect(error?.isMismatch == true)
            #expect(error?.message.contains("“c”") == true)
        }
    }

    @Test("an id that is no id is an error")
    func unreadableIDs() throws {
        let connection = try Connection(path: ":memory:")
        let statement = try connection.statement("SELECT 5, 'u', NULL, 1.5, x'00'")
        _ = try statement.step()
        #expect(try statement.recordID(0) == .integer(5))
        #expect(try statement.recordID(1) == .text("u"))
        for column in 2...4 as ClosedRange<Int32> {
            #expect(throws: SQLiteError.self) { try statement.recordID(column) }
        }
    }
}
