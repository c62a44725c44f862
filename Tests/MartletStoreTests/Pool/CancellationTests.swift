import Foundation
import MartletStore
import Testing

@Suite("Cancellation", .timeLimit(.minutes(5)))
struct CancellationTests {
    private static let script = "CREATE TABLE notes(id INTEGER PRIMARY KEY, body TEXT)"
    /// A query that would take days.
    private static let endless = """
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000000000000)
        SELECT count(*) FROM n
        """

    /// A pool, and a read of it that is under way and does not end by itself.
    private static func reading(
        in folder: StoreFolder, readers: Int
    ) async throws -> (DatabasePool, Task<Void, any Error>) {
        let pool = try await folder.pool(script: script) { $0.readers = readers }
        let (begun, beginning) = AsyncStream<Void>.makeStream()
        let reading = Task {
            try await pool.read { context in
                beginning.yield()
                _ = try context.rows(endless)
            }
        }
        for await _ in begun { break }
        return (pool, reading)
    }

    @Test("a query under way is stopped; the next one on that reader is unharmed")
    func runningQuery() async throws {
        let folder = try StoreFolder()
        let (pool, reading) = try await Self.reading(in: folder, readers: 1)
        reading.cancel()
        let error = await refusal { try await reading.value }
        #expect(error?.kind == .cancelled)
        #expect(error?.remedy == .retry)
        #expect(try await pool.integer("SELECT count(*) FROM notes") == 0)
    }

    @Test("a cancellation between two statements stops the second one")
    func betweenStatements() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script) { $0.readers = 1 }
        let (begun, beginning) = AsyncStream<Void>.makeStream()
        let gate = DispatchSemaphore(value: 0)
        let reading = Task {
            try await pool.read { context in
                _ = try context.rows("SELECT 1")
                beginning.yield()
                gate.wait()
                _ = try context.rows(Self.endless)
            }
        }
        for await _ in begun { break }
        reading.cancel()
        gate.signal()
        #expect(await refusal { try await reading.value }?.kind == .cancelled)
    }

    @Test("work of a task cancelled while it waits is never run", arguments: [true, false])
    func queuedWork(isWriting: Bool) async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script) { $0.readers = 1 }
        let (begun, beginning) = AsyncStream<Void>.makeStream()
        let gate = DispatchSemaphore(value: 0)
        let first = Task {
            if isWriting {
                try await pool.write { _ in
                    beginning.yield()
                    gate.wait()
                }
            } else {
                try await pool.read { _ in
                    beginning.yield()
                    gate.wait()
                }
            }
        }
        for await _ in begun { break }
        let queued = Task {
            if isWriting {
                try await pool.write { _ in Issue.record("it was run") }
            } else {
                try await pool.read { _ in Issue.record("it was run") }
            }
        }
        queued.cancel()
        gate.signal()
        try await first.value
        #expect(await refusal { try await queued.value }?.kind == .cancelled)
    }

    @Test("a read takes whichever reader is idle first, however long another one's query is")
    func idleReader() async throws {
        let folder = try StoreFolder()
        let (pool, reading) = try await Self.reading(in: folder, readers: 2)
        // All at once: by their number alone, some of them would wait behind the endless one.
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<8 {
                group.addTask { try await pool.integer("SELECT count(*) FROM notes") }
            }
            for try await count in group { #expect(count == 0) }
        }
        reading.cancel()
        #expect(await refusal { try await reading.value }?.kind == .cancelled)
    }

    @Test("a cancelled read does not wait for a reader")
    func cancelledWait() async throws {
        let folder = try StoreFolder()
        let (pool, reading) = try await Self.reading(in: folder, readers: 1)
        let waiting = Task { try await pool.read { _ in Issue.record("it was run") } }
        waiting.cancel()
        // The endless query still runs: only the cancellation can end the wait.
        #expect(await refusal { try await waiting.value }?.kind == .cancelled)
        reading.cancel()
        _ = await refusal { try await reading.value }
        #expect(try await pool.integer("SELECT count(*) FROM notes") == 0)
    }

    @Test("a save whose task is cancelled before its commit leaves nothing")
    func save() async throws {
        let folder = try StoreFolder()
        let pool = try await folder.pool(script: Self.script)
        let (begun, beginning) = AsyncStream<Void>.makeStream()
        let gate = DispatchSemaphore(value: 0)
        for statement in [nil, Self.endless] {
            let saving = Task {
                try await pool.write { context in
                    _ = try context.rows("INSERT INTO notes(body) VALUES ('a')")
                    beginning.yield()
                    gate.wait()
                    if let statement { _ = try context.rows(statement) }
                }
            }
            for await _ in begun { break }
            saving.cancel()
            gate.signal()
            #expect(await refusal { try await saving.value }?.kind == .cancelled)
        }
        #expect(try await pool.integer("SELECT count(*) FROM notes") == 0)
        try await pool.write { _ = try $0.rows("INSERT INTO notes(body) VALUES ('b')") }
        #expect(try await pool.integer("SELECT count(*) FROM notes") == 1)
    }
}
