import MartletModel
import MartletStore
import Synchronization
import Testing

@Suite("Observation", .timeLimit(.minutes(5)))
struct ObservationTests {
    @Test("the first value comes at once, and then one after each change, with its records")
    func valuesOfObservation() async throws {
        let database = try await ObservedDatabase()
        try await database.run("INSERT INTO players(name) VALUES ('Ada')")
        let observation = database.players.observe(
            orderBy: [Column<Int64>("id").ascending], in: database.pool)
        var values = observation.withChanges.makeAsyncIterator()
        let first = try #require(try await values.next())
        #expect(first.value.map(\.name) == ["Ada"])
        #expect(first.change == nil)
        try await database.run("INSERT INTO players(name) VALUES ('Bob')")
        let second = try #require(try await values.next())
        #expect(second.value.map(\.name) == ["Ada", "Bob"])
        #expect(second.change?.causes == .local)
        #expect(second.change?.tables["players"]?.inserted == [.integer(2)])
        #expect(second.change?.tables["players"]?.isComplete == true)
        try await database.run("UPDATE players SET name = 'Eve' WHERE id = 1")
        try await database.run("DELETE FROM players WHERE id = 2")
        let third = try #require(try await values.next())
        #expect(third.value.map(\.name) == ["Eve"])
        #expect(third.change?.tables["players"]?.updated == [.integer(1)])
        #expect(third.change?.tables["players"]?.deleted == [.integer(2)])
    }

    @Test("changes to other tables do not count, also not to one named alike")
    func otherTables() async throws {
        let database = try await ObservedDatabase()
        var values = database.players.observe(in: database.pool).withChanges.makeAsyncIterator()
        _ = try await values.next()
        try await database.run("INSERT INTO teams(name) VALUES ('Falcons')")
        try await database.run("INSERT INTO players_archive(name) VALUES ('Zoe')")
        try await database.run("INSERT INTO players(name) VALUES ('Ada')")
        let change = try #require(try await values.next()?.change)
        #expect(Set(change.tables.keys) == ["players"])
    }

    @Test("a single record is woken by changes to it alone, from before it is there on")
    func singleRecord() async throws {
        let database = try await ObservedDatabase()
        try await database.run("INSERT INTO players(name) VALUES ('Ada'), ('Bob')")
        var values = database.players.observe(2, in: database.pool).withChanges.makeAsyncIterator()
        #expect(try await values.next()?.value?.name == "Bob")
        try await database.run("UPDATE players SET name = 'Eve' WHERE id = 1")
        try await database.run("INSERT INTO players(name) VALUES ('Zoe')")
        try await database.run("UPDATE players SET name = 'Bo' WHERE id = 2")
        let next = try #require(try await values.next())
        #expect(next.value?.name == "Bo")
        #expect(next.change?.tables["players"]?.updated == [.integer(2)])
        #expect(next.change?.tables["players"]?.inserted == [])
        try await database.run("DELETE FROM players WHERE id = 2")
        let gone = try #require(try await values.next())
        #expect(gone.value == nil)
        try await database.run("INSERT INTO players(id, name) VALUES (2, 'Ann')")
        #expect(try await values.next()?.value?.name == "Ann")
    }

    @Test("a record with a text key is woken by changes to it alone")
    func textKey() async throws {
        let database = try await ObservedDatabase()
        let notes = PlainTable("notes")
        try await database.run("INSERT INTO notes VALUES ('a', 'one'), ('b', 'two')")
        var values = notes.observe("a", in: database.pool).withChanges.makeAsyncIterator()
        _ = try await values.next()
        try await database.run("UPDATE notes SET body = 'three' WHERE id = 'b'")
        try await database.run("UPDATE notes SET body = 'four' WHERE id = 'a'")
        let next = try #require(try await values.next())
        #expect(next.value?["body"] == "four")
        #expect(next.change?.tables["notes"]?.updated == [.text("a")])
    }

    @Test("what is rolled back is not told of: a save, a savepoint")
    func rollback() async throws {
        let database = try await ObservedDatabase()
        try await database.run("INSERT INTO players(name) VALUES ('Ada'), ('Bob')")
        var values = database.players.observe(in: database.pool).withChanges.makeAsyncIterator()
        _ = try await values.next()
        await #expect(throws: Broken.self) {
            try await database.pool.write { context in
                try context.rows("UPDATE players SET name = 'Eve'")
                throw Broken()
            }
        }
        try await database.pool.write { context in
            try context.rows("UPDATE players SET name = 'Ann' WHERE id = 1")
            try? context.savepoint {
                try context.rows("UPDATE players SET name = 'Amy' WHERE id = 1")
                try context.rows("DELETE FROM players WHERE id = 2")
                _ = try context.savepoint {
                    try context.rows("INSERT INTO teams(name) VALUES ('x')")
                }
                throw Broken()
            }
        }
        let next = try #require(try await values.next())
        #expect(next.value.map(\.name).sorted() == ["Ann", "Bob"])
        #expect(next.change?.tables["players"]?.updated == [.integer(1)])
        #expect(next.change?.tables["players"]?.deleted == [])
        #expect(next.change?.tables["teams"] == nil)
        try await database.pool.write { context in
            try? context.savepoint {
                try context.rows("DELETE FROM players WHERE id = 2")
                throw Broken()
            }
        }
        try await database.run("UPDATE players SET name = 'Bo' WHERE id = 2")
        #expect(try await values.next()?.change?.tables["players"]?.deleted == [])
    }

    @Test("nothing is fetched until the consumer asks; what came meanwhile comes as one")
    func backPressure() async throws {
        let database = try await ObservedDatabase()
        let players = database.players
        let fetches = Mutex(0)
        let observation = database.pool.observe { context in
            fetches.withLock { $0 += 1 }
            return try players.count(in: context)
        }
        var values = observation.withChanges.makeAsyncIterator()
        _ = try await values.next()
        for number in 1...10 {
            try await database.run("INSERT INTO players(name) VALUES (?)", [.text("\(number)")])
        }
        #expect(fetches.withLock { $0 } == 1)
        let next = try #require(try await values.next())
        #expect(next.value == 10)
        #expect(next.change?.tables["players"]?.inserted == Set((1...10).map { .integer($0) }))
        #expect(fetches.withLock { $0 } == 2)
    }

    @Test("what a query reads is learned anew at each fetch")
    func movingRegion() async throws {
        let database = try await ObservedDatabase()
        let (players, teams) = (database.players, PlainTable("teams"))
        let flag = Mutex(false)
        let observation = database.pool.observe { context in
            flag.withLock { $0 }
                ? try teams.count(in: context) : try players.count(in: context)
        }
        var values = observation.withChanges.makeAsyncIterator()
        _ = try await values.next()
        flag.withLock { $0 = true }
        try await database.run("INSERT INTO players(name) VALUES ('Ada')")
        _ = try await values.next()
        try await database.run("INSERT INTO players(name) VALUES ('Bob')")
        try await database.run("INSERT INTO teams(name) VALUES ('Falcons')")
        let next = try #require(try await values.next())
        #expect(next.value == 1)
        #expect(Set((next.change?.tables ?? [:]).keys) == ["teams"])
    }

    @Test("equal values are left out on demand, with the changes that led to them kept")
    func duplicates() async throws {
        let database = try await ObservedDatabase()
        try await database.run("INSERT INTO players(name) VALUES ('Ada')")
        let players = database.players
        let (fetched, fetch) = AsyncStream<Void>.makeStream()
        let observation = database.pool.observe { context in
            fetch.yield()
            return try players.count(in: context)
        }.removeDuplicates()
        let reading = Task {
            var values = observation.withChanges.makeAsyncIterator()
            let first = try await values.next()
            return (first, try await values.next())
        }
        var fetches = fetched.makeAsyncIterator()
        await fetches.next()
        try await database.run("UPDATE players SET name = 'Eve'")
        // Fetched again, to the same number; only then is there another.
        await fetches.next()
        try await database.run("INSERT INTO players(name) VALUES ('Bob')")
        let (first, second) = try await reading.value
        #expect(first?.value == 1)
        #expect(second?.value == 2)
        #expect(second?.change?.tables["players"]?.updated == [.integer(1)])
        #expect(second?.change?.tables["players"]?.inserted == [.integer(2)])
    }
}
