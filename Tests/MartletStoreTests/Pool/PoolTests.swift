import Foundation
import MartletStore
import SQLiteKit
import Testing

@Suite("Pool", .timeLimit(.minutes(5)))
struct PoolTests {
    private static let script = "CREATE TABLE notes(id INTEGER PRIMARY KEY, body TEXT)"

    @Test("what was written is there for the next reader, and after opening again")
    func roundTripOfPool() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        try await pool.write { _ = try $0.rows("INSERT INTO notes(body) VALUES (?)", ["a"]) }
        #expect(try await pool.integer("SELECT count(*) FROM notes") == 1)
        await pool.close()
        #expect(!FileManager.default.fileExists(atPath: folder.path() + "-wal"))
        let again = try await folder.pool()
        #expect(try await again.integer("SELECT count(*) FROM notes") == 1)
    }

    @Test("a save that throws leaves nothing")
    func rollback() async throws {
        struct Stop: Error {}
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        await #expect(throws: Stop.self) {
            try await pool.write { context in
                _ = try context.rows("INSERT INTO notes(body) VALUES ('a')")
                throw Stop()
            }
        }
        #expect(try await pool.integer("SELECT count(*) FROM notes") == 0)
    }

    @Test("reading does not wait for a save that takes long, and sees what was before it")
    func readingDuringWriting() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        let (begun, beginning) = AsyncStream<Void>.makeStream()
        let gate = DispatchSemaphore(value: 0)
        async let saved = pool.write { context in
            _ = try context.rows("INSERT INTO notes(body) VALUES ('a')")
            beginning.yield()
            gate.wait()
            return true
        }
        for await _ in begun { break }
        for _ in 0..<20 {
            #expect(try await pool.integer("SELECT count(*) FROM notes") == 0)
        }
        gate.signal()
        #expect(try await saved)
        #expect(try await pool.integer("SELECT count(*) FROM notes") == 1)
    }

    @Test("one closure reads one moment, whatever is saved meanwhile")
    func snapshotOfOneMoment() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        let (begun, beginning) = AsyncStream<Void>.makeStream()
        let gate = DispatchSemaphore(value: 0)
        async let counts = pool.read { context in
            let first = try context.rows("SELECT count(*) AS n FROM notes")
            beginning.yield()
            gate.wait()
            return [first, try context.rows("SELECT count(*) AS n FROM notes")]
        }
        for await _ in begun { break }
        try await pool.write { _ = try $0.rows("INSERT INTO notes(body) VALUES ('a')") }
        gate.signal()
        let seen = try await counts
        #expect(seen[0] == seen[1])
        #expect(try await pool.integer("SELECT count(*) FROM notes") == 1)
    }

    @Test("several databases in one app share nothing")
    func severalDatabases() async throws {
        let folder = try StoreFolder()
        let pools = [
            try await folder.pool("a.sqlite", script: Self.script),
            try await folder.pool("b.sqlite", script: Self.script),
        ]
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<200 {
                group.addTask {
                    try await pools[number % 2].write {
                        _ = try $0.rows(
                            "INSERT INTO notes(body) VALUES (?)", [.integer(Int64(number % 2))])
                    }
                }
            }
            try await group.waitForAll()
        }
        for (index, pool) in pools.enumerated() {
            #expect(try await pool.integer("SELECT count(*) FROM notes") == 100)
            #expect(
                try await pool.integer(
                    "SELECT count(*) FROM notes WHERE body <> ?",
                    [
                        .text("\(index)")
                    ]) == 0)
        }
    }

    @Test("a connection keeps no more statements than it may")
    func statementCache() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script) {
            $0.cachedStatements = 10
            $0.readers = 1
        }
        let open = try await pool.read { context in
            for number in 0..<300 { _ = try context.rows("SELECT \(number) FROM notes") }
            return context.session.connection.openStatements
        }
        #expect(open <= 10)
        let saving = try await pool.write { context in
            for number in 0..<300 {
                _ = try context.rows("UPDATE notes SET body = ? WHERE id = \(number)", ["x"])
            }
            return context.session.connection.openStatements
        }
        #expect(saving <= 10)
    }

    @Test("a cached statement is not compiled again")
    func statementReuse() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script) { $0.readers = 1 }
        let count: @Sendable (ReadContext) throws -> Int = { context in
            let before = context.session.connection.preparedStatements
            _ = try context.rows("SELECT * FROM notes WHERE id = ?", [1])
            return context.session.connection.preparedStatements - before
        }
        #expect(try await pool.read(count) == 1)
        #expect(try await pool.read(count) == 0)
    }

    @Test("a context outside its closure is refused")
    func escapedContext() async throws {
        // `@unchecked Sendable`: each closure has ended before the test looks.
        final class Box: @unchecked Sendable {
            var reading: ReadContext?
            var writing: WriteContext?
        }
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        let box = Box()
        try await pool.read { box.reading = $0 }
        try await pool.write { box.writing = $0 }
        let notes = PlainTable("notes")
        let reading = try #require(box.reading)
        let writing = try #require(box.writing)
        let refusals = [
            await refusal { try reading.rows("SELECT 1") },
            await refusal { try reading.queryPlan("SELECT 1") },
            await refusal { try reading.description(of: "notes") },
            await refusal { try notes.all(in: reading) },
            await refusal { try notes.find(1, in: reading) },
            await refusal { try writing.rows("INSERT INTO notes(body) VALUES ('a')") },
            await refusal { try writing.savepoint {} },
            await refusal { try notes.insert(["body": "a"] as RecordValues, in: writing) },
            await refusal { try notes.delete(1, in: writing) },
        ]
        #expect(refusals.map(\.?.kind) == Array(repeating: .misuse, count: refusals.count))
        #expect(try await pool.integer("SELECT count(*) FROM notes") == 0)
    }

    @Test("after closing, reading and writing are refused; closing twice is one")
    func closedPool() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        await pool.close()
        await pool.close()
        #expect(await refusal { try await pool.read { _ in } }?.kind == .misuse)
        #expect(await refusal { try await pool.write { _ in } }?.kind == .misuse)
        #expect(
            await refusal { try await pool._observedRead(willRead: {}) { _ in } }?.kind == .misuse)
    }

    @Test("closing waits for work that was asked before")
    func closingWaits() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        let (begun, beginning) = AsyncStream<Void>.makeStream()
        let gate = DispatchSemaphore(value: 0)
        async let saved: Void = pool.write { context in
            beginning.yield()
            gate.wait()
            _ = try context.rows("INSERT INTO notes(body) VALUES ('late')")
        }
        for await _ in begun { break }
        async let closed: Void = pool.close()
        gate.signal()
        try await saved
        await closed
        let again = try await folder.pool()
        #expect(try await again.integer("SELECT count(*) FROM notes") == 1)
    }

    @Test(
        "a path that is no file of its own is refused",
        arguments: ["", ":memory:", "a\0b"])
    func path(_ path: String) async throws {
        let error = await refusal { try await DatabasePool.open(path: path) }
        #expect(error?.kind == .file)
    }

    @Test("a schema changed by another program is seen by the next closure")
    func externalSchema() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(
            script: "CREATE TABLE t(a, b);\nINSERT INTO t VALUES (1, 2)")
        let table = PlainTable("t")
        let all: @Sendable (ReadContext) throws -> [RecordValues] = { context in
            #expect(try context.rows("SELECT * FROM t") == table.all(in: context))
            return try table.all(in: context)
        }
        #expect(try await pool.read(all) == [["a": 1, "b": 2]])
        #expect(try await pool.write(all) == [["a": 1, "b": 2]])
        let other = try Connection(path: folder.path())
        try other.execute("ALTER TABLE t ADD COLUMN c DEFAULT 3")
        #expect(try await pool.read(all) == [["a": 1, "b": 2, "c": 3]])
        #expect(try await pool.write(all) == [["a": 1, "b": 2, "c": 3]])
        try other.execute("ALTER TABLE t DROP COLUMN a")
        #expect(try await pool.read(all) == [["b": 2, "c": 3]])
        #expect(try await pool.write(all) == [["b": 2, "c": 3]])
    }

    @Test("columns made in a save that failed are forgotten")
    func schemaRolledBack() async throws {
        struct Stop: Error {}
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: "CREATE TABLE t(a)")
        let table = PlainTable("t")
        await #expect(throws: Stop.self) {
            try await pool.write { context in
                _ = try context.rows("ALTER TABLE t ADD COLUMN b")
                _ = try table.insert(["a": 1, "b": 2] as RecordValues, in: context)
                #expect(try table.all(in: context) == [["a": 1, "b": 2]])
                throw Stop()
            }
        }
        try await pool.write { context in
            _ = try table.insert(["a": 1] as RecordValues, in: context)
            #expect(try table.all(in: context) == [["a": 1]])
        }
    }
}
