import Foundation
import MartletModel
import MartletStore
import TestFolders
import Testing

/// Records of a `Codable` type go into a table by a short way; it must give what the long one gives.
@Suite("Inserting Codable records")
struct DirectInsertTests {
    private let folder: TemporaryFolder
    private let path: String

    init() throws {
        folder = try TemporaryFolder()
        path = folder.path + "/a.sqlite"
    }

    private struct Player: Codable, ReadableRecord, Equatable {
        var id: Int64?
        var name: String
        var height: Double
        var shirt: UInt8?
        var isActive: Bool
        var born: Date?
        var tags: [String]
        /// Not the table's.
        var mood = "good"

        enum CodingKeys: String, CodingKey {
            case id, name, height, shirt, isActive = "is_active", born, tags, mood
        }

        init(id: Int64? = nil, _ name: String, shirt: UInt8? = nil, tags: [String] = []) {
            self.id = id
            self.name = name
            self.shirt = shirt
            self.tags = tags
            height = 1.75
            isActive = true
            born = Date(timeIntervalSince1970: 1_000_000)
        }

        init(from decoder: any Decoder) throws {
            let values = try decoder.container(keyedBy: CodingKeys.self)
            id = try values.decodeIfPresent(Int64.self, forKey: .id)
            name = try values.decode(String.self, forKey: .name)
            height = try values.decode(Double.self, forKey: .height)
            shirt = try values.decodeIfPresent(UInt8.self, forKey: .shirt)
            isActive = try values.decode(Bool.self, forKey: .isActive)
            born = try values.decodeIfPresent(Date.self, forKey: .born)
            tags = try values.decode([String].self, forKey: .tags)
        }
    }

    private static let players = PlainTable(
        "players", of: Player.self,
        declaration: """
            CREATE TABLE players (
                id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, height REAL, shirt INTEGER,
                is_active BOOLEAN, born TEXT, tags TEXT)
            """, storedElsewhere: ["mood"])

    private func open(_ options: DatabaseOptions = DatabaseOptions()) async throws -> DatabasePool {
        try await DatabasePool.open(path: path, options: options)
    }

    @Test("what goes in comes out; keys are made where they are empty, and kept where they are not")
    func keysMadeOrKept() async throws {
        let records = [
            Player("Ada", shirt: 7, tags: ["fast"]), Player(id: 40, "Zoë with a longer name"),
            Player("Bob"),
        ]
        let (keys, read) = try await open().write { context in
            let keys = try Self.players.insert(contentsOf: records, in: context)
            return (keys, try Self.players.find(keys: [1, 40, 41], in: context))
        }
        #expect(keys == [.integer(1), .integer(40), .integer(41)])
        var expected = records
        expected[0].id = 1
        expected[2].id = 41
        #expect(read == expected)
    }

    @Test("hooks see the same values")
    func hooks() async throws {
        var options = DatabaseOptions()
        options.hooks.before([.insert]) { write, _ in
            let names = write.values?.names
            guard names == ["name", "height", "shirt", "is_active", "born", "tags"] else {
                throw StoreError(.vetoed, "\(names ?? [])")
            }
        }
        let key = try await open(options).write {
            try Self.players.insert(Player("Ada"), in: $0)
        }
        #expect(key == .integer(1))
    }

    @Test(
        "a value the column does not take, a NUL, a constraint: refused, and the next one goes in")
    func refusalsOfCodableValues() async throws {
        try await open().write { context in
            try Self.players.insert(Player("Ada"), in: context)
            let nul = #expect(throws: StoreError.self) {
                try Self.players.insert(Player("B\0b"), in: context)
            }
            #expect(nul?.kind == .value)
            let twice = #expect(throws: StoreError.self) {
                try Self.players.insert(Player(id: 9, "Ada"), in: context)
            }
            #expect(twice?.kind == .constraint)
            #expect(twice?.key == .integer(9))
            #expect(twice?.table == "players")
            #expect(twice?.values.contains(.text("Ada")) == true)
            #expect(try Self.players.insert(Player("Bob"), in: context) == .integer(2))
            #expect(try Self.players.count(in: context) == 2)
        }
    }

    /// Gives other names from record to record, and a number where text belongs.
    private struct Whimsical: Encodable, Record {
        var name: String
        var note: Int?

        enum CodingKeys: String, CodingKey {
            case id, name, note
        }

        func encode(to encoder: any Encoder) throws {
            var values = encoder.container(keyedBy: CodingKeys.self)
            try values.encode(name, forKey: .id)
            if let note { try values.encode(note, forKey: .note) }
            try values.encode(name, forKey: .name)
        }

        mutating func fill(from values: RecordValues) {}
    }

    @Test("a type that encodes other names or kinds each time is still stored right")
    func whims() async throws {
        let table = PlainTable(
            "notes", declaration: "CREATE TABLE notes (id TEXT PRIMARY KEY, name TEXT, note TEXT)")
        let rows = try await open().write { context in
            try table.insert(Whimsical(name: "a"), in: context)
            let error = #expect(throws: StoreError.self) {
                try table.insert(Whimsical(name: "b", note: 1), in: context)
            }
            #expect(error?.kind == .value)
            try table.insert(Whimsical(name: "c"), in: context)
            return try context.rows("SELECT * FROM notes ORDER BY id")
        }
        #expect(
            rows == [
                ["id": "a", "name": "a", "note": .null], ["id": "c", "name": "c", "note": .null],
            ])
    }

    /// Codable, but with its own idea of what it holds.
    private struct Headstrong: Codable, ReadableRecord {
        var id: String?
        var name: String

        func dictionaryRepresentation(columns: TableColumns, table: String) -> RecordValues {
            ["id": id.map { .text($0) } ?? .null, "name": .text(name.uppercased())]
        }
    }

    @Test("a type's own dictionaryRepresentation is what counts; text keys are made")
    func ownWords() async throws {
        let table = PlainTable(
            "names", of: Headstrong.self,
            declaration: "CREATE TABLE names (id TEXT PRIMARY KEY, name TEXT)")
        let names: [String?] = try await open().write { context in
            try table.insert(Headstrong(id: "1", name: "ada"), in: context)
            let made = try table.insert(Headstrong(id: nil, name: "bob"), in: context)
            guard case .text(let key) = made else { return [] }
            #expect(key.utf8.count == 36)
            return [try table.find("1", in: context)?.name, try table.find(key, in: context)?.name]
        }
        #expect(names == ["ADA", "BOB"])
    }

    /// The same without an own idea: text keys are made on the short way.
    private struct Plain: Codable, ReadableRecord {
        var id: String?
        var name: String
    }

    @Test("text keys are made on the short way too, each another")
    func madeTexts() async throws {
        let table = PlainTable(
            "names", of: Plain.self,
            declaration: "CREATE TABLE names (id TEXT PRIMARY KEY, name TEXT)")
        let records = (0..<5).map { Plain(id: $0 == 2 ? "given" : nil, name: "n\($0)") }
        let (keys, names) = try await open().write { context in
            let keys = try table.insert(contentsOf: records, in: context)
            let names = try keys.map { key in
                guard case .text(let text) = key else { return "" }
                return try table.find(text, in: context)?.name ?? ""
            }
            return (keys, names)
        }
        #expect(Set(keys).count == 5)
        #expect(keys[2] == .text("given"))
        #expect(names == records.map(\.name))
    }
}
