import MartletStore
import SQLiteKit
import Testing

/// Tables that are made where they are first used.
@Suite("Tables made on first use", .timeLimit(.minutes(5)))
struct FirstUseTests {
    private static let notes = PlainTable(
        "notes",
        declaration: """
            CREATE TABLE notes(id INTEGER PRIMARY KEY, body TEXT);
            CREATE INDEX notes_by_body ON notes(body);
            """)
    private static let tags = PlainTable("tags", declaration: "CREATE TABLE tags(name TEXT)")

    @Test("in a read")
    func readingBeforeFirstUse() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool()
        #expect(try await pool.read { try Self.notes.count(in: $0) } == 0)
        let indexes = try await pool.read { try Self.notes.description(in: $0).indexes.map(\.name) }
        #expect(indexes == ["notes_by_body"])
    }

    @Test("in a save, which then runs again from its beginning")
    func writing() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: "CREATE TABLE log(n)")
        try await pool.write { context in
            _ = try context.rows("INSERT INTO log VALUES (1)")
            try Self.notes.insert(["body": "a"] as RecordValues, in: context)
            try Self.tags.insert(["name": "b"] as RecordValues, in: context)
        }
        #expect(try await pool.integer("SELECT count(*) FROM log") == 1)
        #expect(try await pool.integer("SELECT count(*) FROM notes") == 1)
        #expect(try await pool.integer("SELECT count(*) FROM tags") == 1)
    }

    @Test("a save that fails afterwards leaves the empty table")
    func failingSave() async throws {
        struct Stop: Error {}
        let folder = try StoreFolder()
        let pool = try await folder.pool()
        await #expect(throws: Stop.self) {
            try await pool.write { context in
                try Self.notes.insert(["body": "a"] as RecordValues, in: context)
                throw Stop()
            }
        }
        #expect(try await pool.integer("SELECT count(*) FROM notes") == 0)
    }

    @Test("by many at once, in reads and in saves")
    func atOnce() async throws {
        for _ in 0..<10 {
            let folder = try StoreFolder()
            let pool = try await folder.pool { $0.readers = 4 }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<16 {
                    group.addTask {
                        if number.isMultiple(of: 4) {
                            _ = try await pool.write {
                                try Self.notes.insert(["body": "a"] as RecordValues, in: $0)
                            }
                        } else {
                            _ = try await pool.read { try Self.notes.all(in: $0) }
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await pool.integer("SELECT count(*) FROM notes") == 4)
        }
    }

    @Test("by another program meanwhile")
    func elsewhereMeanwhile() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool()
        #expect(
            await refusal { try await pool.read { try PlainTable("notes").count(in: $0) } } != nil)
        let other = try Connection(path: folder.path())
        try other.execute("CREATE TABLE Notes(id INTEGER PRIMARY KEY, body TEXT, more)")
        try await pool.write { try Self.notes.insert(["more": 1] as RecordValues, in: $0) }
        #expect(try await pool.read { try Self.notes.count(in: $0) } == 1)
    }

    @Test("a declaration that is wrong is refused, and nothing is made")
    func wrongDeclarations() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: "CREATE TABLE kept(a)")
        let wrong = [
            "CREATE TABEL notes(a)", "CREATE TABLE notes(a); CREATE INDEX i ON notes(b)",
            "CREATE TABLE other(a)", "CREATE TABLE IF NOT EXISTS other(a)", "", "-- nothing",
        ]
        for declaration in wrong {
            let table = PlainTable("notes", declaration: declaration)
            let reading = await refusal { try await pool.read { try table.count(in: $0) } }
            let writing = await refusal {
                try await pool.write { try table.insert(["a": 1] as RecordValues, in: $0) }
            }
            for error in [reading, writing] {
                #expect(error?.remedy == .correctTheProgram, "\(declaration)")
                #expect(error?.table == "notes", "\(declaration)")
            }
        }
        let names = try await pool.read { context in
            try context.rows("SELECT name FROM sqlite_master").map { $0["name"] }
        }
        #expect(names == ["kept"])
    }

    @Test("without a declaration a table that is not there is unknown")
    func undeclared() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool()
        let error = await refusal {
            try await pool.read { try PlainTable("nothing").all(in: $0) }
        }
        #expect(error?.kind == .unknown)
        #expect(error?.table == "nothing")
    }
}
