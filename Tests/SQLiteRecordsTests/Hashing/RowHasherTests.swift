import MartletModel
import MartletProtocol
import SQLiteKit
import SQLiteRecords
import Testing

@Suite("Hashes of rows")
struct RowHasherTests {
    static let script = """
        CREATE TABLE things (
            id INTEGER PRIMARY KEY, number INTEGER, ratio REAL, name TEXT, picture BLOB,
            isDone BOOLEAN, price NUMERIC, day DATE);
        """

    private struct Fixture {
        let connection: Connection
        let type: EntityType
        let table: RecordTable
        var hasher: RowHasher

        init(_ script: String = RowHasherTests.script) throws {
            connection = try Connection(path: ":memory:")
            try connection.execute(script)
            let schema = try SchemaReader.read(connection)
            type = schema.types[0]
            table = RecordTable(type: type, connection: connection)
            hasher = RowHasher(type: type)
        }

        mutating func stored(_ id: RecordID) throws -> UInt64? {
            let rows = try connection.prepare(
                "SELECT \(hasher.columns) FROM \(type.name) WHERE id = ?1")
            rows.bind(1, id)
            defer { rows.reset() }
            return try rows.step() ? hasher.hash(rows) : nil
        }

        /// The hash of a row that SQL text put there.
        mutating func stored(_ columns: String, _ values: String) throws -> UInt64? {
            try connection.execute(
                "REPLACE INTO things(id, \(columns)) VALUES (1, \(values))")
            return try stored(.integer(1))
        }
    }

    @Test("a row hashes as what is documented")
    func documented() throws {
        var fixture = try Fixture(
            "CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT, city TEXT, ratio REAL)")
        try fixture.connection.execute("INSERT INTO teams VALUES (7, 'Eagles', NULL, 0.5)")
        let seed = XXH64.hash(Array("teams".utf8))
        // Sorted: city, name, ratio.
        let bytes: [UInt8] =
            [1, 1, 7, 0, 0, 0, 0, 0, 0, 0]
            + [2, 0, 3, 6, 0, 0, 0] + Array("Eagles".utf8)
            + [3, 0, 2, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f]
        #expect(try fixture.stored(.integer(7)) == XXH64.hash(bytes, seed: seed))
        let mark: [UInt8] = [2, 1, 7, 0, 0, 0, 0, 0, 0, 0, 1, 3, 1, 0, 0, 0, 0, 0, 0]
        #expect(fixture.hasher.mark(.integer(7), 259) == XXH64.hash(mark, seed: seed))
    }

    @Test(
        "what means the same hashes the same",
        arguments: [
            ("ratio", "-0.0", "0"), ("ratio", "2", "2.0"), ("price", "12.5", "'12.50'"),
            ("price", "'7.0'", "7"), ("day", "5", "5.0"), ("isDone", "1", "TRUE"),
            ("number", "'12'", "12"),
        ])
    func same(column: String, one: String, other: String) throws {
        var fixture = try Fixture()
        #expect(try fixture.stored(column, one) == fixture.stored(column, other))
    }

    @Test(
        "what differs hashes differently",
        arguments: [
            ("number", "1", "2"), ("number", "1", "NULL"), ("number", "0", "NULL"),
            ("ratio", "0.1", "0.10000000000000002"), ("ratio", "9e999", "1e308"),
            ("name", "'a'", "'A'"), ("name", "''", "NULL"), ("name", "'é'", "'e' || char(769)"),
            ("name", "'1'", "x'31'"), ("picture", "x'00'", "x'0000'"), ("picture", "x''", "NULL"),
            ("isDone", "1", "2"), ("isDone", "0", "NULL"), ("price", "'0.1'", "'0.01'"),
            ("day", "'2026-11-21'", "'2026-11-22'"), ("name", "CAST(x'ff' AS TEXT)", "''"),
            ("name, day", "'ab', ''", "'a', 'b'"), ("name, day", "'x', NULL", "NULL, 'x'"),
        ])
    func different(columns: String, one: String, other: String) throws {
        var fixture = try Fixture()
        #expect(try fixture.stored(columns, one) != fixture.stored(columns, other))
    }

    @Test("stored rows hash as the wire's", arguments: 0..<40 as Range<UInt64>)
    func wire(seed: UInt64) throws {
        var dice = Dice(seed: seed)
        var fixture = try Fixture()
        for number in 1...25 {
            let id = RecordID.integer(Int64(number))
            let sent = dice.record(of: fixture.type)
            try fixture.table.insert(id, sent, absentMeansNull: true)
            let read = try #require(try fixture.table.read(id))
            let stored = try fixture.stored(id)
            #expect(stored == fixture.hasher.hash(id, sent), "sent \(sent)")
            #expect(stored == fixture.hasher.hash(id, read), "read \(read)")
            let bytes = try SyncCoder.encode(read)
            #expect(stored == fixture.hasher.hash(id, try SyncCoder.decodeAttributes(bytes)))
        }
    }

    @Test("attributes not asked for do not count, nor the order in which they are named")
    func some() throws {
        let fixture = try Fixture()
        let attributes = try ["name", "number"].map { name in
            try #require(fixture.type[attribute: name])
        }
        var one = RowHasher(type: fixture.type, attributes: attributes)
        var other = RowHasher(type: fixture.type, attributes: attributes.reversed())
        let record = Attributes(names: ["number", "name", "ratio"], values: [1, "x", 0.5])
        let less = Attributes(names: ["number", "name"], values: [1, "x"])
        #expect(one.hash(.integer(1), record) == other.hash(.integer(1), less))
    }

    @Test("a range's hash depends on no order, and a part can be taken out")
    func ranges() {
        var forth = RangeHash()
        var back = RangeHash()
        for row in [.max, 5, 7] as [UInt64] { forth.add(row: row) }
        for row in [7, 5, .max] as [UInt64] { back.add(row: row) }
        #expect(forth == back)
        var part = RangeHash()
        part.add(row: .max)
        var rest = RangeHash()
        rest.add(row: 12)
        rest.add(row: 0)
        #expect(forth - part == rest)
        #expect(rest + part == forth)
        rest.add(mark: 1)
        #expect(rest != forth - part)
    }
}

/// Random records, the same for the same seed.
private struct Dice {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed &* 0x9e37_79b9_7f4a_7c15 | 1
    }

    private mutating func roll(_ sides: Int) -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int(state >> 33) % sides
    }

    private mutating func text() -> String {
        String((0..<roll(40)).map { _ in ["a", "é", "😀", " ", "ß", "\u{301}"][roll(6)] }.joined())
    }

    mutating func record(of type: EntityType) -> Attributes {
        var record = Attributes()
        for attribute in type.attributes where roll(5) > 0 {
            record[attribute.name] = value(attribute.kind)
        }
        return record
    }

    private mutating func value(_ kind: AttributeKind) -> Value {
        guard roll(6) > 0 else { return .null }
        let number = [0, 1, -1, .max, .min, Int64(roll(1_000))][roll(6)]
        switch kind {
        case .integer: return .integer(number)
        case .real:
            return roll(2) == 0
                ? .integer(number)
                : .real([-0.0, 0.1, 3, -2.5e300, .leastNonzeroMagnitude, 1e15][roll(6)])
        case .text, .any: return .text("x" + text())
        case .blob: return .text(["", "QQ==", "QUI=", "QUJD", "AAAA"][roll(5)])
        case .boolean: return .boolean(roll(2) == 0)
        case .numeric:
            return .text(
                [
                    "0", "-0.50", "12.500", "-0", "007", "9223372036854775807",
                    "1000000000000000000000",
                    "123456789012.345", "0.000001",
                ][roll(9)])
        }
    }
}
