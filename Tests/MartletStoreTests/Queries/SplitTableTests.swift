import Foundation
import MartletModel
import MartletStore
import Synchronization
import Testing

@Suite("Split tables")
struct SplitTableTests {
    struct Person: Codable, Hashable, ReadableRecord, Sendable {
        var id: Int?
        var name: String
        var bio: String?
        var photo: [UInt8]?
    }

    struct Animal: Codable, Hashable, ReadableRecord, Sendable {
        var id: Int?
        var kind: String
        var name: String
    }

    struct Event: Codable, Hashable, ReadableRecord, Sendable {
        var id: String?
        var what: String?
    }

    private let name = Column<String>("name")
    private let bio = Column<String?>("bio")

    private static let people = SplitTable(
        "people", of: Person.self, key: "id",
        byColumns: [
            PlainTable(
                "people_names",
                declaration: "CREATE TABLE people_names(id INTEGER PRIMARY KEY, name TEXT NOT NULL)"
            ),
            PlainTable(
                "people_texts",
                declaration: "CREATE TABLE people_texts(id INTEGER PRIMARY KEY, bio TEXT)"),
            PlainTable(
                "people_photos",
                declaration: "CREATE TABLE people_photos(id INTEGER PRIMARY KEY, photo BLOB)"),
        ])

    private static func kennel(_ kind: String) -> PlainTable<RecordValues> {
        PlainTable(
            kind + "s",
            declaration: "CREATE TABLE \(kind)s(id INTEGER PRIMARY KEY, kind TEXT, name TEXT)")
    }

    private static let animals = SplitTable(
        "animals", of: Animal.self, key: "id", byKind: Column<String>("kind"),
        parts: [("dog", kennel("dog")), ("cat", kennel("cat"))])

    private static func shard(_ number: Int, key: String) -> PlainTable<RecordValues> {
        PlainTable(
            "events_\(number)",
            declaration: "CREATE TABLE events_\(number)(id \(key) PRIMARY KEY, what TEXT)")
    }

    private func rows(_ league: League, _ sql: String) async throws -> [[SQLValue]] {
        try await league.pool.read { context in try context.rows(sql).map(\.values) }
    }

    @Test("by columns: one record in several tables, read as one")
    func columnsOfSeveralTables() async throws {
        let league = try await League()
        let people = Self.people
        let ids = try await league.pool.write { (context) throws in
            [
                try people.insert(Person(name: "Ada", bio: "long", photo: [1, 2]), in: context),
                try people.insert(Person(name: "Bo"), in: context),
            ]
        }
        #expect(ids == [.integer(1), .integer(2)])
        #expect(try await rows(league, "SELECT id FROM people_texts") == [[1]])
        let (ada, all, found, count) = try await league.pool.read { context in
            (
                try people.find(1, in: context), try people.all(in: context),
                try people.all(where: bio == nil && name == "Bo", in: context),
                try people.count(where: bio != nil, in: context)
            )
        }
        #expect(ada == Person(id: 1, name: "Ada", bio: "long", photo: [1, 2]))
        #expect(all.count == 2)
        #expect(found == [Person(id: 2, name: "Bo")])
        #expect(count == 1)
        try await league.pool.write { (context) throws in
            #expect(try people.update(Person(id: 2, name: "Bob", photo: [9]), in: context))
            #expect(try people.update(Person(id: 1, name: "Ada"), in: context))
            #expect(try !people.update(Person(id: 7, name: "Nobody"), in: context))
            #expect(
                try people.upsert(Person(id: 8, name: "Eve", bio: "b"), in: context) == .integer(8))
        }
        #expect(
            try await people.query().ordered(by: Column<Int>("id").ascending).fetch(in: league.pool)
                == [
                    Person(id: 1, name: "Ada"), Person(id: 2, name: "Bob", photo: [9]),
                    Person(id: 8, name: "Eve", bio: "b"),
                ])
        try await league.pool.write { (context) throws in
            #expect(try people.delete(8, in: context))
            #expect(try !people.delete(8, in: context))
            #expect(try people.delete(where: name.hasPrefix("A"), in: context) == 1)
        }
        #expect(try await rows(league, "SELECT id FROM people_texts") == [])
        #expect(try await rows(league, "SELECT id FROM people_names") == [[2]])
    }

    @Test("by columns: a refusal in one part leaves nothing in the others")
    func wholeOrNothing() async throws {
        var options = DatabaseOptions()
        options.hooks.before([.insert], of: "people_photos") { _, _ in
            throw StoreError(.vetoed, "No photos.")
        }
        let league = try await League(options)
        let left = try await league.pool.write { (context) throws in
            let veto = try? Self.people.insert(Person(name: "Ada", photo: [1]), in: context)
            #expect(veto == nil)
            return try Self.people.count(in: context)
        }
        #expect(left == 0)
    }

    @Test("by kind: records are kept apart, counted together, and move when their kind changes")
    func kinds() async throws {
        let league = try await League()
        let animals = Self.animals
        try await league.pool.write { (context) throws in
            try animals.insert(Animal(kind: "dog", name: "Rex"), in: context)
            try animals.insert(Animal(kind: "cat", name: "Tom"), in: context)
            try animals.insert(Animal(kind: "dog", name: "Ace"), in: context)
        }
        #expect(try await rows(league, "SELECT id FROM dogs") == [[1], [3]])
        #expect(try await rows(league, "SELECT id FROM cats") == [[2]])
        let (tom, ordered, dogs) = try await league.pool.read { context in
            (
                try animals.find(2, in: context),
                try animals.all(orderBy: [name.ascending], limit: 2, in: context).map(\.name),
                try animals.count(where: Column<String>("kind") == "dog", in: context)
            )
        }
        #expect(tom?.name == "Tom")
        #expect(ordered == ["Ace", "Rex"])
        #expect(dogs == 2)
        try await league.pool.write { (context) throws in
            #expect(try animals.update(Animal(id: 1, kind: "cat", name: "Rexa"), in: context))
            #expect(
                try animals.update(
                    RecordValues(names: ["id", "name"], values: [3, "Acer"]), in: context))
            #expect(try animals.delete(2, in: context))
        }
        #expect(try await rows(league, "SELECT id, kind, name FROM dogs") == [[3, "dog", "Acer"]])
        #expect(try await rows(league, "SELECT id, kind, name FROM cats") == [[1, "cat", "Rexa"]])
        let unknown = try await league.refusal { context in
            try animals.insert(Animal(kind: "cow", name: "Elsie"), in: context)
        }
        #expect(unknown?.kind == .value)
        let taken = try await league.refusal { context in
            try animals.insert(Animal(id: 3, kind: "cat", name: "Two"), in: context)
        }
        #expect(taken?.kind == .constraint)
    }

    @Test("by id modulo: numbers spread evenly, found in one part", arguments: [1, 3])
    func modulo(count: Int) async throws {
        let league = try await League()
        let events = SplitTable<RecordValues>(
            "events", key: "id", byModulo: (0..<count).map { Self.shard($0, key: "INTEGER") })
        let what = Column<String>("what")
        try await league.pool.write { (context) throws in
            for number in 1...9 {
                let id = try events.insert(
                    RecordValues(names: ["what"], values: [.text("e\(number)")]), in: context)
                #expect(id == .integer(Int64(number)))
            }
            try events.insert(RecordValues(names: ["id", "what"], values: [-4, "m"]), in: context)
        }
        if count == 3 {
            #expect(try await rows(league, "SELECT id FROM events_1") == [[1], [4], [7]])
            #expect(try await rows(league, "SELECT id FROM events_2") == [[-4], [2], [5], [8]])
        }
        let (five, total, some) = try await league.pool.read { context in
            (
                try events.find(5, in: context)?["what"], try events.count(in: context),
                try events.all(
                    where: what.in(["e3", "e4"]), orderBy: [what.ascending], in: context
                )
                .map { $0["id"] }
            )
        }
        #expect(five == "e5")
        #expect(total == 10)
        #expect(some == [3, 4])
        try await league.pool.write { (context) throws in
            #expect(
                try events.update(
                    RecordValues(names: ["id", "what"], values: [5, "new"]), in: context))
            #expect(try events.delete(6, in: context))
            #expect(try !events.delete(60, in: context))
            #expect(try events.delete(where: what == "new", in: context) == 1)
            #expect(try events.count(in: context) == 8)
        }
    }

    @Test("by id modulo: texts are spread by a hash that stays")
    func textModulo() async throws {
        var options = DatabaseOptions()
        let seed = Mutex(0 as UInt64)
        options.randomBits = {
            seed.withLock {
                $0 &+= 0x9e37_79b9_7f4a_7c15
                return $0
            }
        }
        let league = try await League(options)
        let events = SplitTable(
            "events", of: Event.self, key: "id",
            byModulo: (0..<2).map { Self.shard($0, key: "TEXT") })
        try await league.pool.write { (context) throws in
            // FNV-1a of “a” is 0xaf63dc4c8601ec8c, of “b” 0xaf63df4c8601f1a5.
            try events.insert(Event(id: "a", what: "even"), in: context)
            try events.insert(Event(id: "b", what: "odd"), in: context)
        }
        #expect(try await rows(league, "SELECT what FROM events_0") == [["even"]])
        #expect(try await rows(league, "SELECT what FROM events_1") == [["odd"]])
        let made = try await league.pool.write { (context) throws in
            let id = try events.insert(Event(what: "made"), in: context)
            guard case .text(let key) = id else { return nil as Event? }
            #expect(key.count == 36)
            return try events.find(key, in: context)
        }
        #expect(made?.what == "made")
    }

    @Test("a split by modulo grows in a version: records move to where they are looked for")
    func growth() async throws {
        let folder = try StoreFolder()
        @Sendable func events(_ count: Int) -> SplitTable<RecordValues> {
            SplitTable(
                "events", key: "id", byModulo: (0..<count).map { Self.shard($0, key: "INTEGER") })
        }
        @Sendable func texts(_ count: Int) -> SplitTable<RecordValues> {
            SplitTable(
                "texts", key: "id",
                byModulo: (0..<count).map { number in
                    PlainTable(
                        "texts_\(number)",
                        declaration: "CREATE TABLE texts_\(number)(id TEXT PRIMARY KEY, what TEXT)")
                })
        }
        let first = try await DatabasePool.open(path: folder.path(), migrations: Migrations([]))
        try await first.write { context in
            for number in 0..<2_500 {
                let key = SQLValue.integer(Int64(number))
                try events(2).insert(["id": key, "what": "x"] as RecordValues, in: context)
                let text = SQLValue.text("k\(number)")
                try texts(2).insert(["id": text, "what": "x"] as RecordValues, in: context)
            }
        }
        await first.close()
        let moved = Mutex<[Int]>([])
        let grow = Migration(1, "five parts") { context in
            let counts = try [
                context.spread(events(5)), context.spread(texts(5)), context.spread(events(5)),
            ]
            moved.withLock { $0 = counts }
        }
        let second = try await DatabasePool.open(
            path: folder.path(), migrations: Migrations([grow]))
        // With two and with five parts, two of ten keys belong to the same part.
        #expect(moved.withLock { $0[0] } == 2_000)
        #expect(moved.withLock { $0[1] > 0 && $0[2] == 0 })
        let found = try await second.read { context in
            try (0..<2_500).count { number in
                try events(5).find(number, in: context) != nil
                    && texts(5).find("k\(number)", in: context) != nil
            }
        }
        #expect(found == 2_500)
        let (total, texts) = try await second.read { context in
            (try events(5).count(in: context), try texts(5).count(in: context))
        }
        #expect(total == 2_500)
        #expect(texts == 2_500)
        await second.close()
        // Back to fewer parts: the others are left empty.
        let shrink = Migration(2, "three parts") { context in
            let former = (3..<5).map { Self.shard($0, key: "INTEGER") }
            try context.spread(events(3), from: former)
        }
        let third = try await DatabasePool.open(
            path: folder.path(), migrations: Migrations([grow, shrink]))
        #expect(try await third.read { try events(3).count(in: $0) } == 2_500)
        #expect(try await third.integer("SELECT count(*) FROM events_3") == 0)
        #expect(try await third.read { try events(3).find(1_999, in: $0) } != nil)
        await third.close()
    }

    @Test(
        "a split that grows is refused if a part has no room for a record, and none is lost",
        arguments: ["REPLACE", "IGNORE"])
    func growthWithoutRoom(clause: String) async throws {
        let folder = try StoreFolder()
        @Sendable func events(_ count: Int) -> SplitTable<RecordValues> {
            SplitTable(
                "events", key: "id",
                byModulo: (0..<count).map { number in
                    PlainTable(
                        "events_\(number)",
                        declaration: """
                            CREATE TABLE events_\(number)(
                                id INTEGER PRIMARY KEY, what TEXT UNIQUE ON CONFLICT \(clause))
                            """)
                })
        }
        let first = try await DatabasePool.open(path: folder.path(), migrations: Migrations([]))
        try await first.write { context in
            // Of two parts each has one of them, of three parts the last has both.
            for number: Int64 in [2, 5] {
                let key = SQLValue.integer(number)
                try events(2).insert(["id": key, "what": "x"] as RecordValues, in: context)
            }
        }
        await first.close()
        let grow = Migration(1, "three parts") { try $0.spread(events(3)) }
        await #expect(throws: StoreError.self) {
            _ = try await DatabasePool.open(path: folder.path(), migrations: Migrations([grow]))
        }
        let second = try await DatabasePool.open(path: folder.path(), migrations: Migrations([]))
        #expect(try await second.read { try events(2).count(in: $0) } == 2)
        await second.close()
    }

    @Test("a record with a name that no part has is refused, unless it is stored elsewhere")
    func misspelt() async throws {
        struct Misspelt: Codable, ReadableRecord, Sendable {
            var id: String?
            var waht: String?
        }
        let league = try await League()
        var events = SplitTable(
            "events", of: Misspelt.self, key: "id",
            byModulo: (0..<2).map { Self.shard($0, key: "TEXT") })
        let (strict, record) = (events, Misspelt(id: "a", waht: "x"))
        let error = await refusal {
            try await league.pool.write { try strict.insert(record, in: $0) }
        }
        #expect(error?.kind == .unknown)
        events.storedElsewhere = ["waht"]
        let lenient = events
        try await league.pool.write { try lenient.insert(record, in: $0) }
    }

    @Test("parts that do not fit together are refused")
    func refusalsOfParts() async throws {
        let league = try await League()
        let wrong = [
            SplitTable<RecordValues>(
                "both", key: "id", byModulo: [Self.shard(0, key: "INTEGER"), Self.kennel("dog")]),
            SplitTable<RecordValues>(
                "twice", key: "id", byColumns: [Self.kennel("dog"), Self.kennel("cat")]),
            SplitTable<RecordValues>("keyless", key: "name", byColumns: [Self.kennel("dog")]),
        ]
        for table in wrong {
            let read = try await league.refusal { context in try table.count(in: context) }
            #expect(read?.kind == .schema, "\(table.name)")
            let written = try await league.refusal { context in
                try table.insert(RecordValues(names: ["name"], values: ["x"]), in: context)
            }
            #expect(written?.kind == .schema, "\(table.name)")
        }
        let ghost = try await league.refusal { context in
            try Self.people.count(where: Column<Int>("ghost") == 1, in: context)
        }
        #expect(ghost?.kind == .unknown)
        #expect(ghost?.message.contains("photo") == true)
    }
}
