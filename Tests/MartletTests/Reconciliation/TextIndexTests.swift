import MartletModel
import MartletProtocol
import MartletStore
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// The app made an index over a table that had rows, with the usual triggers, and did not build it.
@Suite("An incomplete full-text index of the app")
struct TextIndexTests {
    private static func index(on table: String, forgets: String = "OLD.name") -> String {
        let delete = "INSERT INTO words(words, rowid, name) VALUES ('delete', OLD.id, \(forgets));"
        let insert = "INSERT INTO words(rowid, name) VALUES (NEW.id, NEW.name);"
        return """
            CREATE VIRTUAL TABLE words USING fts5(name, content='\(table)', content_rowid='id');
            CREATE TRIGGER words_new AFTER INSERT ON \(table) BEGIN \(insert) END;
            CREATE TRIGGER words_gone AFTER DELETE ON \(table) BEGIN \(delete) END;
            CREATE TRIGGER words_changed AFTER UPDATE ON \(table) BEGIN \(delete) \(insert) END;
            """
    }

    private func team(_ id: Int64, at revision: Int64, _ name: String) -> ChangeSet {
        .entry(revision, .created("teams", id, at: revision, ["name": .text(name)]))
    }

    private func renamed(_ id: Int64, at revision: Int64, _ name: String) -> ChangeSet {
        let entry = RecordEntry(
            id: .integer(id), revision: revision, attributes: ["name": .text(name)])
        return .entry(revision, TypeChanges(name: "teams", update: [entry.id], entries: [entry]))
    }

    @Test("is rebuilt, and other devices' changes arrive")
    func mended() throws {
        let device = try DeviceFixture()
        try device.apply(
            [team(1, at: 1, "Falcons"), team(2, at: 2, "Ravens")], reaching: 2)
        try device.shell(Self.index(on: "teams"))
        let update = renamed(1, at: 3, "Owls")
        try device.apply([update], reaching: 3)
        let found = "SELECT rowid FROM words WHERE words MATCH"
        #expect(try device.rows("\(found) 'Owls'") == [[1]])
        #expect(try device.rows("\(found) 'Ravens'") == [[2]])
        #expect(try device.rows("\(found) 'Falcons'") == [])
        #expect(try device.store.outboxCount == 0)
    }

    @Test("is rebuilt, and the pieces of a difference arrive whole")
    func slices() throws {
        let world = NodeFixture(try DeviceFixture()) { $0.sliceRecords = 2 }
        func answer(_ revision: Int64, _ name: String) throws {
            let entries = (Int64(1)...9).map {
                RecordEntry(
                    id: .integer($0), revision: revision, attributes: ["name": .text(name)])
            }
            let set = DeviceFixture.difference(
                revision, TypeChanges(name: "players", update: entries.map(\.id), entries: entries))
            let sent = try #require(try world.handle(.wake(isUrgent: true)).sent)
            var told = try world.answer(sent.exchange, revision, [set])
            while told.actions.contains(where: { if case .applyNext = $0 { true } else { false } })
            {
                #expect(told.error == nil)
                told = world.handle(.applyNext(exchange: sent.exchange))
            }
            #expect(told.error == nil)
        }
        try answer(9, "before")
        try world.device.shell(Self.index(on: "players"))
        try answer(18, "after")
        #expect(try world.device.store.revision == 18)
        let rows = "SELECT count(*) FROM players WHERE name = 'after'"
        #expect(try world.device.rows(rows) == [[9]])
        let words = "SELECT count(*) FROM words WHERE words MATCH 'after'"
        #expect(try world.device.rows(words) == [[9]])
    }

    @Test("is named, if its triggers remove words that it does not have")
    func wrongTriggers() throws {
        let device = try DeviceFixture()
        try device.apply([team(1, at: 1, "Falcons")], reaching: 1)
        try device.shell(
            Self.index(on: "teams", forgets: "'some other words than it has'")
                + "INSERT INTO words(words) VALUES ('rebuild');")
        let error = #expect(throws: SyncError.self) {
            try device.apply([renamed(1, at: 2, "Owls")], reaching: 2)
        }
        #expect(error?.kind == .file && error?.remedy == .report)
        #expect(error?.message.contains(": “words”. Correct the triggers") == true)
        #expect(try device.rows("SELECT name FROM teams") == [["Falcons"]])
        #expect(try device.store.revision == 1)
        #expect(try device.store.unappliedReason == error?.message)
        try device.shell("DROP TRIGGER words_changed; DROP TRIGGER words_gone; DROP TABLE words;")
        try device.shell("DROP TRIGGER words_new;")
        #expect(try device.store.unappliedReason != nil)
        try device.apply([renamed(1, at: 2, "Owls")], reaching: 2)
        #expect(try device.store.unappliedReason == nil)
        #expect(try device.rows("SELECT name FROM teams") == [["Owls"]])
    }
}
