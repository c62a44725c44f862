import Foundation
import MartletModel
import MartletStore
import SQLiteKit
import Synchronization
import Testing
import Waiting

@Suite("Drafts", .timeLimit(.minutes(5)))
struct DraftTests {
    private func opened(
        _ answer: DraftAnswer? = nil
    ) async throws -> (ObservedDatabase, Draft<Player>, NoticeBook) {
        let database = try await ObservedDatabase()
        try await database.run("INSERT INTO players(name, team) VALUES ('Ada', 1)")
        let draft = try await database.pool.draft(of: database.players, 1)
        let book = NoticeBook()
        draft.onChange { notice in
            book.add(notice)
            return answer ?? .take
        }
        return (database, draft, book)
    }

    @Test("saving writes the edited fields only, and the draft goes on")
    func saving() async throws {
        let (database, draft, book) = try await opened()
        #expect(draft.editedFields.isEmpty)
        draft.update { $0.name = "Eve" }
        #expect(draft.editedFields == ["name"])
        draft.update { $0.name = "Ada" }
        #expect(draft.editedFields.isEmpty)
        var changes = database.pool.changes.makeAsyncIterator()
        #expect(try await draft.save() == .integer(1))
        draft.update { $0.name = "Eve" }
        // Behind the draft's back and unseen by it: only the edited field may be written.
        try await database.run(
            "CREATE TRIGGER one BEFORE UPDATE OF team ON players BEGIN SELECT RAISE(ABORT, 'no');"
                + " END")
        try await draft.save()
        #expect(draft.editedFields.isEmpty)
        #expect(draft.value == Player(id: 1, name: "Eve", team: 1))
        #expect(try await changes.next()?.tables["players"]?.updated == [.integer(1)])
        #expect(
            try await database.pool.read { try database.players.find(1, in: $0) } == draft.value)
        #expect(book.notices.isEmpty)
    }

    @Test("the store trumps field by field; what gave way stays readable and can be put back")
    func taking() async throws {
        let (database, draft, book) = try await opened()
        draft.update {
            $0.name = "Mine"
            $0.team = 5
        }
        try await database.run("UPDATE players SET name = 'Theirs'")
        #expect(draft.value == Player(id: 1, name: "Theirs", team: 5))
        #expect(draft.editedFields == ["team"])
        #expect(draft.superseded == ["name": "Mine"])
        let notice = try #require(book.notices.first)
        #expect(notice.table == "players")
        #expect(notice.key == .integer(1))
        #expect(notice.causes == .local)
        #expect(
            notice.fields.map { [$0.base, $0.mine, $0.theirs] } == [["Ada", "Mine", "Theirs"]])
        #expect(notice.fields.map(\.name) == ["name"])
        #expect(notice.fields.map(\.isConflict) == [true])
        #expect(book.notices.count == 1)
        try draft.restoreSuperseded()
        #expect(draft.value.name == "Mine")
        #expect(draft.superseded.isEmpty)
        try await draft.save()
        #expect(
            try await database.pool.read { try database.players.find(1, in: $0) } == draft.value)
    }

    @Test("kept edits stay, on top of what the store has now")
    func keeping() async throws {
        let (database, draft, book) = try await opened(.keep)
        draft.update { $0.name = "Mine" }
        try await database.run("UPDATE players SET name = 'Theirs', team = 7")
        #expect(draft.value == Player(id: 1, name: "Mine", team: 7))
        #expect(draft.editedFields == ["name"])
        #expect(draft.superseded.isEmpty)
        #expect(book.notices.first?.fields.count == 2)
        try await draft.save()
        let stored = try await database.pool.read { try database.players.find(1, in: $0) }
        #expect(stored == Player(id: 1, name: "Mine", team: 7))
    }

    @Test("a draft may become a new record")
    func saveAsNew() async throws {
        let (database, draft, _) = try await opened(.saveAsNew)
        draft.update { $0.name = "Mine" }
        try await database.run("UPDATE players SET name = 'Theirs'")
        #expect(draft.isNew)
        #expect(draft.key == nil)
        #expect(draft.value.name == "Mine")
        #expect(try await draft.save() == .integer(2))
        #expect(draft.key == .integer(2))
        #expect(!draft.isNew)
        let all = try await database.pool.read { try database.players.all(in: $0) }
        #expect(all.map(\.name) == ["Theirs", "Mine"])
        draft.update { $0.name = "Mine too" }
        #expect(try await draft.save() == .integer(2))
    }

    @Test("a draft of a deleted record keeps its values, cannot be saved, and can be saved as new")
    func deletion() async throws {
        let (database, draft, book) = try await opened()
        draft.update { $0.name = "Mine" }
        try await database.run("DELETE FROM players")
        #expect(book.notices.map(\.isDeletion) == [true])
        #expect(draft.isDeleted)
        #expect(draft.value.name == "Mine")
        let error = await #expect(throws: DraftError.self) { try await draft.save() }
        // An alert shows the message.
        #expect((error as (any Error)?)?.localizedDescription == error?.message)
        #expect(error?.kind == .recordGone)
        #expect(error?.message.contains("saveAsNew") == true)
        // SQLite gives the key of a deleted row again.
        try await database.run("INSERT INTO players(id, name) VALUES (9, 'Zoe')")
        #expect(try await draft.saveAsNew() == .integer(10))
        #expect(!draft.isDeleted)
        #expect(try await database.pool.read { try database.players.count(in: $0) } == 2)
    }

    @Test("a record that comes back is followed again")
    func restoredRecord() async throws {
        let (database, draft, _) = try await opened()
        draft.update { $0.team = 4 }
        try await database.run("DELETE FROM players")
        #expect(draft.isDeleted)
        try await database.run("INSERT INTO players(id, name, team) VALUES (1, 'Ada', 1)")
        #expect(!draft.isDeleted)
        #expect(draft.editedFields == ["team"])
    }

    @Test("the notice comes before anyone can see the change, and what is rolled back is forgotten")
    func before() async throws {
        let (database, draft, _) = try await opened()
        draft.update { $0.name = "Mine" }
        let path = database.pool.path
        let seen = Mutex<[String?]>([])
        draft.onChange { _ in
            let connection = try? Connection(path: path, mode: .readOnly)
            let name = try? connection?.text("SELECT name FROM players")
            seen.withLock { $0.append(name) }
            return .take
        }
        try await database.run("UPDATE players SET name = 'Theirs'")
        #expect(seen.withLock { $0 } == ["Ada"])
        #expect(draft.value.name == "Theirs")
        try await database.run(
            "CREATE TABLE parts(of INTEGER REFERENCES teams(id) DEFERRABLE INITIALLY DEFERRED)")
        // Foreign keys are checked at the commit: after the draft was told.
        await #expect(throws: StoreError.self) {
            try await database.pool.write { context in
                try context.rows("UPDATE players SET name = 'Never'")
                try context.rows("INSERT INTO parts VALUES (77)")
            }
        }
        #expect(seen.withLock { $0 } == ["Ada", "Theirs"])
        #expect(draft.value.name == "Theirs")
        #expect(draft.superseded == ["name": "Mine"])
    }

    @Test("what another process did unnoticed is seen before a save writes over it")
    func elsewhereBeforeDraft() async throws {
        let (database, draft, book) = try await opened()
        let other = try await DatabasePool.open(path: database.pool.path)
        try await other.write { _ = try $0.rows("UPDATE players SET name = 'Theirs'") }
        draft.update {
            $0.name = "Mine"
            $0.team = 3
        }
        try await draft.save()
        #expect(book.notices.map(\.causes) == [.elsewhere])
        let stored = try await database.pool.read { try database.players.find(1, in: $0) }
        #expect(stored == Player(id: 1, name: "Theirs", team: 3))
        // While a draft is open, other processes are watched for.
        try await other.write { _ = try $0.rows("UPDATE players SET name = 'Scheduler'") }
        await database.sleeps.pass()
        try await database.run("INSERT INTO teams(name) VALUES ('Owls')")
        #expect(book.notices.count == 2)
        #expect(draft.value.name == "Scheduler")
        try await other.write { _ = try $0.rows("DELETE FROM players") }
        draft.update { $0.name = "Mine" }
        let error = await #expect(throws: DraftError.self) { try await draft.save() }
        #expect(error?.kind == .recordGone)
        #expect(draft.isDeleted)
    }

    @Test("drafts of one record hear of each other's saves; edits made during a save stay")
    func concurrently() async throws {
        let (database, draft, _) = try await opened()
        let other = try await database.pool.draft(of: database.players, 1)
        other.update { $0.team = 9 }
        draft.update { $0.name = "Mine" }
        other.onChange { _ in
            // On the database's queue, between the save's writing and its commit.
            draft.update { $0.team = 6 }
            return .take
        }
        try await draft.save()
        #expect(draft.value == Player(id: 1, name: "Mine", team: 6))
        #expect(draft.editedFields == ["team"])
        #expect(other.value == Player(id: 1, name: "Mine", team: 9))
        try await other.save()
        #expect(draft.value.team == 9)
        #expect(draft.superseded == ["team": 6])
    }

    @Test("a discarded draft drops its edits, ends its notices and cannot be saved")
    func discarded() async throws {
        let (database, draft, book) = try await opened()
        let notices = draft.notices
        draft.update { $0.name = "Mine" }
        try await database.run("UPDATE players SET team = 2")
        draft.discard()
        #expect(draft.value.name == "Ada")
        var heard = 0
        for await notice in notices { heard += notice.fields.count }
        #expect(heard == 1)
        try await database.run("UPDATE players SET team = 3")
        #expect(book.notices.count == 1)
        let error = await #expect(throws: DraftError.self) { try await draft.save() }
        #expect(error?.kind == .discarded)
    }

    @Test("a draft that nobody holds is forgotten")
    func forgotten() async throws {
        let database = try await ObservedDatabase()
        try await database.run("INSERT INTO players(name) VALUES ('Ada')")
        do {
            let draft = try await database.pool.draft(of: database.players, 1)
            #expect(!database.pool._changes.drafts.isEmpty)
            #expect(draft.value.name == "Ada")
        }
        try await waitUntil("the draft is forgotten") { database.pool._changes.drafts.isEmpty }
        try await database.untilObserved(by: 0)
    }

    @Test("a draft is of a record that is there, in a table whose key is one column")
    func refusalsOfDrafts() async throws {
        let database = try await ObservedDatabase()
        let missing = await #expect(throws: StoreError.self) {
            try await database.pool.draft(of: database.players, 1)
        }
        #expect(missing?.kind == .unknown)
        let marks = await #expect(throws: StoreError.self) {
            try await database.pool.draft(of: PlainTable("marks"), 1)
        }
        #expect(marks?.kind == .misuse)
    }
}
