import Foundation
import MartletModel
import MartletStore
import Testing

/// The forms for programs without tasks.
@Suite("Blocking reads and writes", .timeLimit(.minutes(5)))
struct BlockingTests {
    private static let script = "CREATE TABLE notes(id INTEGER PRIMARY KEY, body TEXT)"

    @Test("they read and write")
    func roundTripOfBlockingPool() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        try useBlocking(pool)
        #expect(try await pool.integer("SELECT count(*) FROM notes") == 1)
    }

    private func useBlocking(_ pool: DatabasePool) throws {
        let notes = PlainTable("notes")
        // What is no Sendable may go in and out: the thread waits.
        final class Body { var text = "a" }
        let body = Body()
        let key = try pool.writeBlocking { context in
            try notes.insert(["body": .text(body.text)] as RecordValues, in: context)
        }
        #expect(key == .integer(1))
        let found = try pool.readBlocking { try notes.find(1, in: $0) }
        #expect(found == ["id": 1, "body": "a"])
        let made = PlainTable("made", declaration: "CREATE TABLE made(a)")
        #expect(try pool.readBlocking { try made.count(in: $0) } == 0)
    }

    @Test("what throws leaves nothing, and a closed pool is refused")
    func failuresInPool() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        #expect(throws: StoreError.self) { try failing(pool) }
        #expect(try await pool.integer("SELECT count(*) FROM notes") == 0)
        await pool.close()
        #expect(await refusal { try blocking(pool, isWriting: true) }?.kind == .misuse)
        #expect(await refusal { try blocking(pool, isWriting: false) }?.kind == .misuse)
    }

    private func failing(_ pool: DatabasePool) throws {
        try pool.writeBlocking { context in
            _ = try context.rows("INSERT INTO notes(body) VALUES ('a')")
            _ = try context.rows("INSERT INTO nothing VALUES (1)")
        }
    }

    @Test("within a closure of any database they are refused instead of waiting for ever")
    func nesting() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script) { $0.readers = 1 }
        let other = try await folder.pool("other.sqlite")
        for isWriting in [true, false] {
            for inner in [pool, other] {
                let errors = [
                    await refusal {
                        try await pool.write { _ in try blocking(inner, isWriting: isWriting) }
                    },
                    await refusal {
                        try await pool.read { _ in try blocking(inner, isWriting: isWriting) }
                    },
                    await refusal { try nested(pool, inner, isWriting: isWriting) },
                ]
                #expect(errors.map(\.?.kind) == [.misuse, .misuse, .misuse])
            }
        }
        #expect(try await pool.integer("SELECT count(*) FROM notes") == 0)
    }

    private func nested(
        _ pool: DatabasePool, _ inner: DatabasePool, isWriting: Bool
    ) throws {
        try pool.writeBlocking { _ in try blocking(inner, isWriting: isWriting) }
    }

    @Test("threads and tasks may use one pool together")
    func mixture() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        let insert: @Sendable (WriteContext) throws -> Void = { context in
            _ = try context.rows("INSERT INTO notes(body) VALUES ('a')")
        }
        let (ended, ending) = AsyncStream<Void>.makeStream()
        for _ in 0..<4 {
            Thread.detachNewThread {
                for _ in 0..<25 {
                    do {
                        try pool.writeBlocking(insert)
                        _ = try pool.readBlocking { try $0.rows("SELECT count(*) FROM notes") }
                    } catch {
                        Issue.record(error)
                    }
                }
                ending.yield()
            }
        }
        for _ in 0..<100 { try await pool.write(insert) }
        var count = 0
        for await _ in ended {
            count += 1
            if count == 4 { break }
        }
        #expect(try await pool.integer("SELECT count(*) FROM notes") == 200)
    }
}

/// A synchronous function, which may call what blocks.
private func blocking(_ pool: DatabasePool, isWriting: Bool) throws {
    if isWriting {
        try pool.writeBlocking { _ in }
    } else {
        try pool.readBlocking { _ in }
    }
}
