import MartletStore
import Synchronization
import Testing

@Suite("Ends of an observation", .timeLimit(.minutes(5)))
struct ObservationEndTests {
    @Test("leaving the loop ends it")
    func earlyBreak() async throws {
        let database = try await ObservedDatabase()
        for try await _ in database.players.observe(in: database.pool) {
            #expect(database.subscribers == 1)
            break
        }
        for await _ in database.players.observe(in: database.pool).results { break }
        try await database.untilObserved(by: 0)
    }

    @Test("cancelling the task ends it, while it waits and before it begins")
    func cancelledObservation() async throws {
        let database = try await ObservedDatabase()
        let (began, begin) = AsyncStream<Void>.makeStream()
        let task = Task {
            var seen = 0
            for try await _ in database.players.observe(in: database.pool) {
                seen += 1
                begin.yield()
            }
            return seen
        }
        for await _ in began { break }
        task.cancel()
        #expect(try await task.value == 1)
        try await database.untilObserved(by: 0)
        let late = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            var values = database.players.observe(in: database.pool).makeAsyncIterator()
            return try await values.next()
        }
        #expect(try await late.value == nil)
        try await database.untilObserved(by: 0)
    }

    @Test("closing the database ends all loops")
    func closedDatabaseEndsLoops() async throws {
        let database = try await ObservedDatabase()
        var values = database.players.observe(in: database.pool).makeAsyncIterator()
        var changes = database.pool.changes.makeAsyncIterator()
        _ = try await values.next()
        await database.pool.close()
        #expect(try await values.next() == nil)
        #expect(try await changes.next() == nil)
    }

    @Test("loops over one observation are independent of each other")
    func independent() async throws {
        let database = try await ObservedDatabase()
        let observation = database.players.observe(in: database.pool)
        var one = observation.makeAsyncIterator()
        var other = observation.makeAsyncIterator()
        _ = try await one.next()
        try await database.run("INSERT INTO players(name) VALUES ('Ada')")
        #expect(try await one.next()?.count == 1)
        #expect(try await other.next()?.count == 1)
        try await database.run("INSERT INTO players(name) VALUES ('Bob')")
        #expect(try await other.next()?.count == 2)
        #expect(try await one.next()?.count == 2)
        #expect(database.subscribers == 2)
    }

    @Test("a fetch that fails ends the loop with its error; results go on")
    func failuresOfFetch() async throws {
        let database = try await ObservedDatabase()
        let players = database.players
        let observation = database.pool.observe { context in
            let count = try players.count(in: context)
            if count == 1 { throw Broken() }
            return count
        }
        var values = observation.makeAsyncIterator()
        var results = observation.results.makeAsyncIterator()
        #expect(try await values.next() == 0)
        #expect(try await results.next()?.get() == 0)
        try await database.run("INSERT INTO players(name) VALUES ('Ada')")
        await #expect(throws: Broken.self) { try await values.next() }
        #expect(try await values.next() == nil)
        try await database.untilObserved(by: 1)
        let failure = try await results.next()
        #expect(throws: Broken.self) { try failure?.get() }
        try await database.run("INSERT INTO players(name) VALUES ('Bob')")
        #expect(try await results.next()?.get() == 2)
    }

    @Test("a hundred observers each get the newest value")
    func hundred() async throws {
        let database = try await ObservedDatabase()
        let players = database.players
        let sums = try await withThrowingTaskGroup(of: Int.self) { group in
            let (began, begin) = AsyncStream<Void>.makeStream()
            for _ in 0..<100 {
                group.addTask {
                    var last = 0
                    for try await count in players.observeCount(in: database.pool) {
                        if count == 0 { begin.yield() }
                        last = count
                        if count == 20 { break }
                    }
                    return last
                }
            }
            var ready = 0
            for await _ in began {
                ready += 1
                if ready == 100 { break }
            }
            for number in 1...20 {
                try await database.run("INSERT INTO players(name) VALUES (?)", [.text("\(number)")])
            }
            var sums: [Int] = []
            for try await last in group { sums.append(last) }
            return sums
        }
        #expect(sums == Array(repeating: 20, count: 100))
        try await database.untilObserved(by: 0)
    }
}
