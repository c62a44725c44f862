import Dispatch
import Foundation
internal import MartletModel
import MartletStore
import Synchronization
import Testing

@Suite("What an observation notices", .timeLimit(.minutes(5)))
struct ObservationReachTests {
    /// Observes a query over one table, makes a change elsewhere and one that counts, and gives
    /// the tables told of.
    private func told(
        of table: String, after sql: String, in database: ObservedDatabase
    ) async throws -> DatabaseChange? {
        let observed = PlainTable(table)
        var values = observed.observeCount(in: database.pool).withChanges.makeAsyncIterator()
        _ = try await values.next()
        try await database.run("INSERT INTO teams(name) VALUES ('Falcons')")
        try await database.run(sql)
        return try await values.next()?.change
    }

    @Test("tables without rowids and full-text tables count as wholes")
    func silentTables() async throws {
        let database = try await ObservedDatabase()
        let marks = try await told(
            of: "marks", after: "INSERT INTO marks VALUES (1, 'monday', 3)", in: database)
        #expect(marks?.tables["marks"]?.isComplete == false)
        #expect(marks?.tables["teams"] == nil)
        let pages = try await told(
            of: "pages", after: "INSERT INTO pages VALUES ('martlets never land')", in: database)
        #expect(pages?.tables["teams"] == nil)
    }

    @Test("a DELETE of all rows and a REPLACE are noticed, also by who watches one record")
    func unclearWrites() async throws {
        let database = try await ObservedDatabase()
        try await database.run("CREATE UNIQUE INDEX one_name ON players(name)")
        try await database.run("INSERT INTO players(name) VALUES ('Ada'), ('Bob')")
        var values = database.players.observe(1, in: database.pool).makeAsyncIterator()
        #expect(try await values.next() != .some(nil))
        try await database.run("REPLACE INTO players(id, name) VALUES (3, 'Ada')")
        #expect(try await values.next() == .some(nil))
        try await database.run("INSERT INTO players(id, name) VALUES (1, 'Eve')")
        #expect(try await values.next() != .some(nil))
        try await database.run("DELETE FROM players")
        #expect(try await values.next() == .some(nil))
    }

    @Test(
        "rows that go without being named are noticed, however the statement is written",
        arguments: [
            "/* all */ DELETE FROM players", "WITH x AS (SELECT 1) DELETE FROM players",
            "DELETE FROM players -- where", "DELETE FROM players RETURNING 'where'",
            "UPDATE players SET rowid = 99 WHERE id = 1",
            "UPDATE players SET id = 99 WHERE id = 1",
            "INSERT INTO players(id, name) VALUES (1, 'x') ON CONFLICT DO UPDATE SET _rowid_ = 7",
            "INSERT INTO lockers(code, player) VALUES ('a', 2)",
            "UPDATE lockers SET code = 'a' WHERE player = 3",
            "UPDATE notes SET id = 'other' WHERE id = 'note'",
        ])
    func unnamedRows(sql: String) async throws {
        let database = try await ObservedDatabase()
        try await database.run(
            """
            CREATE TABLE lockers(
                id INTEGER PRIMARY KEY, code TEXT UNIQUE ON CONFLICT REPLACE, player INTEGER)
            """)
        try await database.run("INSERT INTO players(id, name) VALUES (1, 'Ada')")
        try await database.run("INSERT INTO lockers VALUES (1, 'a', 1), (3, 'c', 3)")
        try await database.run("INSERT INTO notes VALUES ('note', 'text')")
        let table = try #require(
            ["players", "lockers", "notes"].first { sql.contains($0) })
        let key: RecordID = table == "notes" ? .text("note") : .integer(1)
        var values = PlainTable(table).observe(key, in: database.pool).makeAsyncIterator()
        #expect(try await values.next() != .some(nil))
        try await database.run(sql)
        #expect(try await values.next() == .some(nil))
    }

    @Test("tables and views can still be dropped")
    func drops() async throws {
        let database = try await ObservedDatabase()
        try await database.run("INSERT INTO players(id, name) VALUES (1, 'Ada')")
        try await database.run("CREATE VIEW names AS SELECT name FROM players")
        try await database.run("CREATE INDEX by_name ON players(name)")
        for statement in ["DROP VIEW names", "DROP INDEX by_name", "DROP TABLE players"] {
            try await database.run(statement)
        }
        let left = try await database.pool.read {
            try $0.rows("SELECT 1 FROM sqlite_master WHERE name IN ('names', 'by_name', 'players')")
        }
        #expect(left.isEmpty)
    }

    @Test(
        "a change committed after a fetch's moment was fixed, and before the fetch, is not missed",
        .timeLimit(.minutes(1)))
    func beforeFetch() async throws {
        let isArmed = Mutex(false)
        let goOn = DispatchSemaphore(value: 0)
        let (fixings, fixed) = AsyncStream<Void>.makeStream()
        // The look at the schema, at the start of each transaction, is what fixes it.
        let trace = StatementTrace { run in
            guard run.sql == "PRAGMA schema_version", isArmed.withLock({ $0.take() }) else {
                return
            }
            fixed.yield()
            goOn.wait()
        }
        let database = try await ObservedDatabase(trace: trace)
        let counts = database.players.observeCount(in: database.pool)
        isArmed.withLock { $0 = true }
        async let seen = Self.values(of: counts, upTo: 1)
        for await _ in fixings { break }
        try await database.run("INSERT INTO players(name) VALUES ('Ada')")
        goOn.signal()
        #expect(try await seen == [0, 1])
    }

    private static func values(
        of counts: DatabaseObservation<Int>, upTo last: Int
    ) async throws -> [Int] {
        var seen: [Int] = []
        for try await count in counts {
            seen.append(count)
            if count == last { break }
        }
        return seen
    }

    @Test("a change committed while a value is being fetched is not missed")
    func duringFetch() async throws {
        let database = try await ObservedDatabase()
        try await database.run("INSERT INTO players(name) VALUES ('Ada'), ('Bob')")
        let players = database.players
        let (hasRead, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let fetches = Mutex(0)
        // First it reads record 1, then record 2: a change to 2 comes while 2 is being read and
        // the observation still stands for 1.
        let observation = database.pool.observe { context in
            let number = fetches.withLock { fetches in
                fetches += 1
                return fetches
            }
            let found = try players.find(number == 1 ? 1 : 2, in: context)
            if number == 2 {
                hasRead.signal()
                goOn.wait()
            }
            return found?.name
        }
        var values = observation.makeAsyncIterator()
        #expect(try await values.next() == "Ada")
        try await database.run("UPDATE players SET name = 'Eve' WHERE id = 1")
        let writing = Task {
            await withCheckedContinuation { continuation in
                DispatchQueue.global().async {
                    hasRead.wait()
                    continuation.resume()
                }
            }
            try await database.run("UPDATE players SET name = 'Bo' WHERE id = 2")
            goOn.signal()
        }
        #expect(try await values.next() == "Bob")
        try await writing.value
        #expect(try await values.next() == "Bo")
    }

    @Test("what another connection to the file writes is noticed, and only while anyone observes")
    func elsewhereByConnection() async throws {
        let database = try await ObservedDatabase()
        let other = try await DatabasePool.open(path: database.pool.path)
        var values = database.players.observe(in: database.pool).withChanges.makeAsyncIterator()
        _ = try await values.next()
        try await other.write { context in
            _ = try context.rows("INSERT INTO players(name) VALUES ('Ada')")
        }
        await database.sleeps.pass()
        let next = try #require(try await values.next())
        #expect(next.value.map(\.name) == ["Ada"])
        #expect(next.change?.causes == .elsewhere)
        #expect(next.change?.isUnbounded == true)
        // Its own saves are not taken for another's.
        try await database.run("INSERT INTO players(name) VALUES ('Bob')")
        await database.sleeps.pass()
        try await database.run("INSERT INTO players(name) VALUES ('Zoe')")
        #expect(try await values.next()?.change?.causes == .local)
    }

    @Test("the stream of changes has one element a commit, or several taken together")
    func changes() async throws {
        let database = try await ObservedDatabase()
        var changes = database.pool.changes.makeAsyncIterator()
        try await database.run("INSERT INTO players(name) VALUES ('Ada')")
        let first = try #require(try await changes.next())
        #expect(first.tables["players"]?.inserted == [.integer(1)])
        try await database.run("INSERT INTO players(name) VALUES ('Bob')")
        try await database.run("DELETE FROM players WHERE id = 2")
        try await database.run("UPDATE players SET name = 'Eve' WHERE id = 1")
        let second = try #require(try await changes.next())
        #expect(second.tables["players"]?.inserted == [])
        #expect(second.tables["players"]?.updated == [.integer(1)])
        #expect(second.tables["players"]?.deleted == [])
    }

    @Test("a table made on first use may be observed before it is there")
    func madeOnFirstUse() async throws {
        let database = try await ObservedDatabase()
        let goals = PlainTable(
            "goals", declaration: "CREATE TABLE goals(id INTEGER PRIMARY KEY, minute INTEGER)")
        var values = goals.observeCount(in: database.pool).makeAsyncIterator()
        #expect(try await values.next() == 0)
        try await database.run("INSERT INTO goals(minute) VALUES (12)")
        #expect(try await values.next() == 1)
    }
}

extension Bool {
    /// What it was; from now on it is false.
    fileprivate mutating func take() -> Bool {
        defer { self = false }
        return self
    }
}
