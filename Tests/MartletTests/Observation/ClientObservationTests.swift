import MartletModel
import MartletStore
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("Observing a client", .timeLimit(.minutes(5)))
struct ClientObservationTests {
    @Test("an observation of a temporary id goes on with the permanent one")
    func temporaryID() async throws {
        let server = try LocalServer()
        let (ours, theirs) = (try await TestClient(server), try await TestClient(server))
        try await theirs.insert(Player(name: "First"))
        try await theirs.client.sync()
        let temporary = try await ours.insert(Player(name: "Ann"))
        #expect(temporary < 0)
        var values = ours.players.observe(temporary, in: ours.client).withChanges
            .makeAsyncIterator()
        #expect(try await values.next()?.value?.id == temporary)
        try await ours.client.sync()
        let settled = try #require(try await values.next())
        #expect(settled.value?.id == 2)
        #expect(settled.change?.causes.contains(.idsAssigned) == true)
        try await theirs.client.sync()
        try await theirs.run("UPDATE players SET name = 'One' WHERE id = 1")
        try await theirs.client.sync()
        try await ours.client.sync()
        try await theirs.run("UPDATE players SET name = 'Anna' WHERE id = 2")
        try await theirs.client.sync()
        try await ours.client.sync()
        let remote = try #require(try await values.next())
        #expect(remote.value?.name == "Anna")
        #expect(remote.change?.causes == .remote)
        #expect(remote.change?.tables["players"]?.updated == [.integer(2)])
    }

    @Test("a refusal is told as such, with the record as the server has it")
    func refusedSetIsObserved() async throws {
        let server = try LocalServer()
        let (ours, theirs) = (try await TestClient(server), try await TestClient(server))
        try await theirs.insert(Player(name: "Ann"))
        try await theirs.client.sync()
        try await ours.client.sync()
        var values = ours.players.observe(1, in: ours.client).withChanges.makeAsyncIterator()
        _ = try await values.next()
        try await ours.run("UPDATE players SET name = 'Mine' WHERE id = 1")
        let mine = try #require(try await values.next())
        #expect(mine.value?.name == "Mine")
        #expect(mine.change?.causes == .local)
        try await theirs.run("UPDATE players SET name = 'Theirs' WHERE id = 1")
        try await theirs.client.sync()
        try await ours.client.sync()
        let refused = try #require(try await values.next())
        #expect(refused.value?.name == "Theirs")
        #expect(refused.change?.causes.contains(.refused) == true)
        #expect(try await ours.client.parked().count == 1)
    }

    @Test("while a big answer is applied in slices, values are only ever of whole change sets")
    func slices() async throws {
        let server = try LocalServer()
        let theirs = try await TestClient(server)
        for number in 0..<60 {
            try await theirs.client.write { context in
                _ = try theirs.players.insert(Player(name: "\(number) a"), in: context)
                _ = try theirs.players.insert(Player(name: "\(number) b"), in: context)
            }
        }
        try await theirs.client.sync()
        let ours = try await TestClient(server) { $0.node.sliceRecords = 4 }
        let observation = ours.players.observeCount(in: ours.client)
        let watching = Task {
            var seen: [Int] = []
            for try await count in observation {
                seen.append(count)
                if count == 120 { break }
            }
            return seen
        }
        try await ours.client.sync()
        let seen = try await watching.value
        #expect(seen.last == 120)
        #expect(seen.allSatisfy { $0.isMultiple(of: 2) })
        #expect(seen == seen.sorted())
    }

    @Test("tables without rowids, and full text kept by triggers, are noticed when others write")
    func silentTables() async throws {
        let script =
            DeviceFixture.script + """
                CREATE TABLE marks(id TEXT PRIMARY KEY, mark INTEGER) WITHOUT ROWID;
                """
        let server = try LocalServer(script: script)
        let ours = try await TestClient(server, script: script)
        let theirs = try await TestClient(server, script: script)
        try await ours.client.write { context in
            _ = try context.rows("CREATE VIRTUAL TABLE pages USING fts5(body)")
            _ = try context.rows(
                """
                CREATE TRIGGER paged AFTER INSERT ON notes BEGIN
                    INSERT INTO pages VALUES (new.body); END
                """)
        }
        var marks = PlainTable("marks").observeCount(in: ours.client).makeAsyncIterator()
        var found = ours.client.observe { context in
            try context.rows("SELECT 1 FROM pages WHERE pages MATCH 'martlet'").count
        }.makeAsyncIterator()
        #expect(try await marks.next() == 0)
        #expect(try await found.next() == 0)
        try await theirs.run("INSERT INTO marks VALUES ('a', 3)")
        try await theirs.client.sync()
        try await ours.client.sync()
        #expect(try await marks.next() == 1)
        try await theirs.run("INSERT INTO notes VALUES ('a', 'a martlet')")
        try await theirs.client.sync()
        try await ours.client.sync()
        #expect(try await found.next() == 1)
    }

    @Test("what another process writes to the file is noticed by itself")
    func elsewhereByProcess() async throws {
        let ours = try await TestClient(nil) { $0.externalWritesPeriod = .milliseconds(5) }
        var values = ours.notes.observeCount(in: ours.client).withChanges.makeAsyncIterator()
        #expect(try await values.next()?.value == 0)
        try DeviceFixture.shell("INSERT INTO notes VALUES ('a', 'shell')", path: ours.path)
        let next = try #require(try await values.next())
        #expect(next.value == 1)
        #expect(next.change?.causes == .elsewhere)
    }
}
