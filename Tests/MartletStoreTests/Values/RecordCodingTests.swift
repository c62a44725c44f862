import Foundation
import MartletModel
import MartletStore
import Testing

@Suite("Records from Codable types", .timeLimit(.minutes(5)))
struct RecordCodingTests {
    enum Position: String, Codable { case goal, wing }
    enum Grade: Int, Codable { case first = 1, second = 2 }
    struct Size: Codable, Equatable { var width: Int, height: Double? }
    /// Stands for one value.
    struct Tag: Codable, Equatable {
        var text: String
        init(_ text: String) { self.text = text }
        init(from decoder: any Decoder) throws {
            text = try decoder.singleValueContainer().decode(String.self)
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(text)
        }
    }
    /// Stands for what stands for one value.
    struct Label: Codable, Equatable {
        var tag: Tag
        init(_ tag: Tag) { self.tag = tag }
        init(from decoder: any Decoder) throws {
            tag = try decoder.singleValueContainer().decode(Tag.self)
        }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(tag)
        }
    }

    struct Player: Codable, Equatable, ReadableRecord {
        var id: Int?
        var name: String
        var position: Position
        var grade: Grade?
        var size: Size
        var sizes: [Size]
        var tags: [String: Int]
        var bonus: [Int]?
        var label: Label
        var born: Date
        var badge: UUID
        var photo: Data
        var page: URL
        var fee: Decimal
        var ratio: Float
        var big: UInt64

        enum CodingKeys: String, CodingKey {
            case id, position, grade, size, sizes, tags, bonus, label, born, badge, photo, page,
                fee, ratio, big
            case name = "full_name"
        }
    }

    private static let script = """
        CREATE TABLE players(
            id INTEGER PRIMARY KEY, full_name TEXT NOT NULL, position TEXT, grade INTEGER,
            size TEXT, sizes TEXT, tags TEXT, bonus TEXT, label TEXT, born TEXT, badge TEXT,
            photo BLOB, page TEXT, fee TEXT, ratio REAL, big, more TEXT DEFAULT 'more')
        """
    private static func player() throws -> Player {
        Player(
            name: "Ana “Ñ”", position: .wing, grade: nil, size: Size(width: 1, height: nil),
            sizes: [Size(width: 2, height: 0.5), Size(width: 3, height: nil)],
            tags: ["a/b": 1, "ü": 2], bonus: nil, label: Label(Tag("l")),
            born: Date(timeIntervalSince1970: 1.25), badge: UUID(), photo: Data([1, 0, 2]),
            page: try #require(URL(string: "https://example.org/a b".replacing(" ", with: "%20"))),
            fee: try #require(Decimal(string: "12.34")), ratio: 0.1, big: .max)
    }
    private let players = PlainTable("players", of: Player.self)

    @Test("every kind of property comes back as it was")
    func roundTripOfProperties() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        var player = try Self.player()
        let saved = player
        let key = try await pool.write { try players.insert(saved, in: $0) }
        player.id = 1
        #expect(key == .integer(1))
        #expect(try await pool.read { try players.find(1, in: $0) } == player)
        #expect(try await pool.read { try players.all(in: $0) } == [player])
        let raw = try await pool.read { context in
            try context.rows(
                "SELECT full_name, position, grade, size, label, bonus, more FROM players")
        }
        #expect(
            raw == [
                [
                    "full_name": "Ana “Ñ”", "position": "wing", "grade": .null,
                    "size": "{\"width\":1}", "label": "l", "bonus": .null, "more": "more",
                ]
            ])
    }

    struct Short: Codable, Equatable, ReadableRecord {
        var id: Int
        var missing: Int?
        var more: String
    }

    @Test("extra columns are passed over; a missing one is nil or refused")
    func columnsMissingOrExtra() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(
            script: "CREATE TABLE t(id INTEGER PRIMARY KEY, other TEXT, more TEXT);\n"
                + "INSERT INTO t VALUES (1, 'x', 'y')")
        let table = PlainTable("t", of: Short.self)
        #expect(
            try await pool.read { try table.find(1, in: $0) }
                == Short(id: 1, missing: nil, more: "y"))
        let error = await refusal {
            try await pool.read { context in
                try context.forEachRow("SELECT id FROM t") { _ = try Short(row: $0) }
            }
        }
        #expect(error?.kind == .value)
        #expect(error?.message.contains("“more”") == true)
    }

    @Test(
        "a value that does not suit its property is refused by the column's name, and hidden",
        arguments: [
            ("id", "'secret'"), ("full_name", "NULL"), ("full_name", "x'00'"),
            ("position", "'secret'"), ("grade", "77"), ("size", "'secret'"),
            ("size", "'{\"width\":\"secret\"}'"), ("size", "7"), ("born", "'secret'"),
            ("badge", "'secret'"), ("photo", "'secret'"), ("big", "-1"), ("fee", "'secret'"),
            ("label", "x'00'"),
        ])
    func mismatch(_ column: String, _ value: String) async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(
            script: Self.script.replacing("INTEGER PRIMARY KEY", with: "")
                .replacing(" NOT NULL", with: ""))
        var player = try Self.player()
        player.id = 1
        let saved = player
        try await pool.write { context in
            try players.insert(saved, in: context)
            _ = try context.rows("UPDATE players SET \(column) = \(value)")
        }
        let error = await refusal { try await pool.read { try players.all(in: $0) } }
        #expect(error?.kind == .value)
        #expect(error?.message.contains("“\(column)”") == true, "\(error?.message ?? "none")")
        #expect(error?.message.contains("secret") == false)
    }

    struct Picky: Codable, ReadableRecord {
        var id: Int
        init(from decoder: any Decoder) throws {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(codingPath: [], debugDescription: "secret"))
        }
    }

    @Test("a type's own refusal becomes one of the store")
    func ownDecoding() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool()
        let error = await refusal {
            try await pool.read { context in
                try context.forEachRow("SELECT 1 AS id") { _ = try Picky(row: $0) }
            }
        }
        #expect(error?.kind == .value)
        #expect(error?.message.contains("secret") == false)
    }

    /// A class that says by hand what it holds, as a view would.
    final class Form: Record {
        var name = ""
        var shirt: Int?

        func dictionaryRepresentation(columns: TableColumns, table: String) -> RecordValues {
            columns.filter(["full_name": name.sqlValue, "shirt": shirt.sqlValue])
        }

        func fill(from values: RecordValues) throws {
            if let value = values["full_name"] { name = try String(sqlValue: value) }
            if let value = values["shirt"] { shirt = try Int?(sqlValue: value) }
        }
    }

    @Test("an object is filled in place, and merges by the rules")
    func objects() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(
            script: "CREATE TABLE t(id INTEGER PRIMARY KEY, full_name TEXT, shirt INTEGER)")
        let table = PlainTable("t")
        let read = try await pool.write { context in
            let form = Form()
            form.name = "Ana"
            try table.insert(form, in: context)
            var filled = Form()
            let same = filled
            #expect(try table.fill(&filled, from: 1, in: context))
            #expect(same === filled)
            #expect(try !table.fill(&filled, from: 2, in: context))
            return filled.name
        }
        #expect(read == "Ana")

        let form = Form()
        form.shirt = 7
        let other: RecordValues = ["full_name": "Bo", "shirt": 8]
        #expect(try form.merge(other) === form)
        // A text that is there, though empty, stays; so does the shirt.
        #expect(form.name == "" && form.shirt == 7)
        try form.merge(["shirt": .null] as RecordValues)
        #expect(form.shirt == 7)
        try form.merge(other, shouldOverride: true).merge(
            ["shirt": .null] as RecordValues, shouldOverride: true)
        #expect(form.name == "Bo" && form.shirt == nil)
        try form.merge(["shirt": 9] as RecordValues)
        #expect(form.shirt == 9)
    }

    struct Pair: Codable, Equatable, ReadableRecord {
        var left: Int?
        var right: String?
    }

    /// No record, since it has no names.
    struct List: Record, Encodable {
        let items: [Int]

        mutating func fill(from values: RecordValues) {}

        func encode(to encoder: any Encoder) throws {
            var container = encoder.unkeyedContainer()
            try container.encode(items)
        }
    }

    @Test("structures merge: nulls give way, what is absent stays, with override all is taken")
    func merging() throws {
        let pair = Pair(left: 1, right: nil)
        #expect(try pair.merging(Pair(left: 2, right: "b")) == Pair(left: 1, right: "b"))
        #expect(
            try pair.merging(Pair(left: 2, right: nil), shouldOverride: true)
                == Pair(left: 2, right: nil))
        #expect(
            try Pair(left: 1, right: "a").merging(
                ["left": .null] as RecordValues, shouldOverride: true)
                == Pair(left: nil, right: "a"))
        #expect(
            try Pair(left: nil, right: nil).merging(["left": 1] as RecordValues)
                .merging(["left": 2, "right": "c"] as RecordValues) == Pair(left: 1, right: "c"))
        #expect(throws: StoreError.self) { try pair.merging(["right": .blob([1])] as RecordValues) }
        #expect(throws: StoreError.self) {
            try List(items: [1]).dictionaryRepresentation(columns: .all, table: "")
        }
    }

    @Test("what was read is a value: changing it changes nothing in the database")
    func isolation() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(
            script: "CREATE TABLE t(left INTEGER, right TEXT);\nINSERT INTO t VALUES (1, 'a')")
        let table = PlainTable("t", of: Pair.self)
        var read = try await pool.read { try table.all(in: $0) }
        read[0].left = 2
        var values = try await pool.read { try $0.rows("SELECT * FROM t") }
        values[0]["left"] = 3
        #expect(try await pool.read { try table.all(in: $0) } == [Pair(left: 1, right: "a")])
        // Not even within a save, before it is written.
        try await pool.write { context in
            var inside = try table.all(in: context)
            inside[0].left = 4
            #expect(try table.all(in: context) == [Pair(left: 1, right: "a")])
        }
    }
}
