import MartletModel
import MartletProtocol
import MartletStore
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("Edits older than the schema")
struct ToleranceTests {
    private static let withoutCity = """
        CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT NOT NULL);
        CREATE TABLE players(
            id INTEGER PRIMARY KEY, team_id INTEGER REFERENCES teams(id) ON DELETE CASCADE,
            name TEXT, shirt INTEGER UNIQUE);
        CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT);
        """
    private static let withoutPlayers = """
        CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT DEFAULT 'Oslo');
        CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT);
        """

    /// A team and a player, confirmed at revision 1.
    private func device() throws -> DeviceFixture {
        let device = try DeviceFixture()
        try device.apply(
            [
                .entry(
                    1, .created("teams", 5, at: 1, ["name": "Falcons", "city": "Oslo"]),
                    .created("players", 6, at: 1, ["name": "Ann", "team_id": 5]))
            ], reaching: 1)
        return device
    }

    /// What a migration does to the tables, and no more.
    private func migrate(_ device: DeviceFixture, _ sql: String, to script: String) throws {
        let connection = try Connection(path: device.path, mode: .readWrite)
        let triggers = try connection.statement(
            "SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        var drops = ""
        while try triggers.step() { drops += "DROP TRIGGER \(triggers.text(0));" }
        triggers.reset()
        try connection.execute(drops + sql)
        try device.reopen(script: script)
    }

    /// Someone deletes a note: nobody can tell what depends on it, so all edits are moved.
    private func moveAll(_ device: DeviceFixture, to revision: Revision) throws {
        let changes = TypeChanges(name: "notes", delete: [.text("gone")])
        try device.apply([.entry(revision, changes)], reaching: revision)
    }

    private func aside(_ device: DeviceFixture) throws -> [String: Attributes] {
        var kept: [String: Attributes] = [:]
        let rows = try device.store.applying.connection.statement(
            "SELECT type, id, attributes FROM martlet_aside")
        defer { rows.reset() }
        while try rows.step() {
            kept["\(rows.text(0)) \(rows.text(1))"] = try SyncCoder.decodeAttributes(rows.blob(2))
        }
        return kept
    }

    @Test("an edit of a dropped column is moved, kept and sent; its base goes aside")
    func droppedColumn() throws {
        let device = try device()
        try device.write {
            try $0.update("teams", .integer(5), ["name": "Hawks", "city": "Rome"])
        }
        try device.write { try $0.insert("teams", ["name": "New", "city": "Bonn"]) }
        try migrate(device, "ALTER TABLE teams DROP COLUMN city", to: Self.withoutCity)
        try moveAll(device, to: 2)
        #expect(
            try device.rows("SELECT id, name FROM teams ORDER BY id")
                == [[-2, "New"], [5, "Hawks"]])
        #expect(try aside(device) == ["teams 5": ["city": "Oslo"]])
        // Once more, with a base image that was made after the migration.
        try moveAll(device, to: 3)
        #expect(try aside(device) == ["teams 5": ["city": "Oslo"]])
        let sets = try device.gather().changeSets
        #expect(
            sets.map { $0.types[0].entries[0].attributes } == [
                ["name": "Hawks", "city": "Rome"],
                ["name": "New", "city": "Bonn"],
            ])
        // What others make of the column is newer than the image's value.
        try device.apply(
            [
                .entry(4, own: sets[0].identifier, .updated("teams", 5, at: 4, ["city": "Rome"])),
                .entry(
                    5, own: sets[1].identifier,
                    .created("teams", 8, old: -2, at: 5, ["name": "New", "city": "Bonn"])),
            ], reaching: 5)
        #expect(
            try aside(device) == [
                "teams 5": ["city": "Rome"], "teams 8": ["city": "Bonn"],
            ])
        #expect(try device.store.outboxCount == 0)
    }

    @Test("an edit of nothing but a dropped column still needs its record")
    func onlyDroppedColumn() throws {
        let device = try device()
        try device.write { try $0.update("teams", .integer(5), ["city": "Rome"]) }
        try migrate(device, "ALTER TABLE teams DROP COLUMN city", to: Self.withoutCity)
        try moveAll(device, to: 2)
        #expect(try device.store.outboxCount == 1)
        try device.apply(
            [.entry(3, TypeChanges(name: "teams", delete: [.integer(5)]))], reaching: 3)
        #expect(try device.store.outboxCount == 0)
        #expect(try device.store.parked().map(\.reason) == [.stale])
    }

    @Test("a refused edit of a dropped column is shown whole, and sent again whole")
    func retriedColumn() throws {
        let device = try device()
        try device.write { try $0.update("teams", .integer(5), ["city": "Rome"]) }
        let first = try device.gather().changeSets[0].identifier ?? ""
        try migrate(device, "ALTER TABLE teams DROP COLUMN city", to: Self.withoutCity)
        try device.apply([.refusal(first, .permission)], reaching: 1)
        let shown = try device.store.parked()[0].changes[0]
        #expect(shown.mine == ["city": "Rome"])
        #expect(shown.base?["city"] == "Oslo")
        try device.store.retry(first, now: 1)
        let again = try device.gather().changeSets[0].types[0].entries[0]
        #expect(again.attributes == ["city": "Rome"])
        #expect(again.revision == 1)
    }

    @Test("a set that touches a dropped type is moved, follows new ids, and is sent whole")
    func droppedType() throws {
        let device = try device()
        try device.write { try $0.insert("players", ["name": "Bea"]) }
        let first = try device.gather().changeSets[0].identifier ?? ""
        try device.write { context in
            try context.update("players", .integer(-2), ["name": "Bella"])
            try context.update("players", .integer(6), ["name": "Anna"])
            try context.update("teams", .integer(5), ["city": "Rome"])
        }
        try migrate(device, "DROP TABLE players", to: Self.withoutPlayers)
        try moveAll(device, to: 2)
        try device.apply(
            [
                .entry(3, own: first, .created("players", 9, old: -2, at: 3, ["name": "Bea"])),
                .entry(4, .updated("players", 6, at: 1, ["shirt": 7])),
            ], reaching: 4)
        #expect(try device.rows("SELECT city FROM teams") == [["Rome"]])
        let set = try device.gather().changeSets[0]
        #expect(set.types.map(\.name) == ["teams", "players"])
        let players = set.types[1]
        #expect(players.update == [.integer(6), .integer(9)])
        #expect(players.entries.map(\.revision) == [1, 3])
        #expect(players.entries.map { $0.attributes["name"] } == ["Anna", "Bella"])
        // The images of records whose table is gone are not lost either.
        #expect(try aside(device)["players 6"]?["name"] == "Ann")
        #expect(try aside(device)["players 6"]?["shirt"] == 7)
    }

    @Test("a refused set that touches a dropped type is shown and sent again whole")
    func retriedType() throws {
        let device = try device()
        try device.write { context in
            try context.update("players", .integer(6), ["name": "Anna"])
            try context.update("teams", .integer(5), ["city": "Rome"])
        }
        let first = try device.gather().changeSets[0].identifier ?? ""
        try migrate(device, "DROP TABLE players", to: Self.withoutPlayers)
        try device.apply([.refusal(first, .permission)], reaching: 1)
        let shown = try device.store.parked()[0].changes
        #expect(shown.map(\.type) == ["teams", "players"])
        #expect(shown[1].mine == ["name": "Anna"])
        #expect(shown[1].base?["name"] == "Ann")
        #expect(shown[1].theirs?["name"] == "Ann")
        try device.store.retry(first, now: 1)
        let again = try device.gather().changeSets[0]
        #expect(again.types.map(\.name) == ["teams", "players"])
        #expect(again.types[1].entries[0].revision == 1)
        #expect(again.types[1].entries[0].attributes == ["name": "Anna"])
        #expect(try device.store.parkedCount == 0)
    }

    @Test("a refused new record of a dropped type is sent again as new")
    func retriedNewRecord() throws {
        let device = try device()
        try device.write { try $0.insert("players", ["name": "Bea"]) }
        let first = try device.gather().changeSets[0].identifier ?? ""
        try migrate(device, "DROP TABLE players", to: Self.withoutPlayers)
        try device.apply([.refusal(first, .permission)], reaching: 1)
        try device.store.retry(first, now: 1)
        let again = try device.gather().changeSets[0].types[0]
        #expect(again.name == "players")
        #expect(again.create == [.integer(-2)])
        #expect(again.entries.map(\.attributes) == [["name": "Bea"]])
    }

    @Test("an edit of a dropped type that others changed first is parked, with what it was made on")
    func staleType() throws {
        let device = try device()
        try device.write { try $0.update("players", .integer(6), ["name": "Anna"]) }
        try migrate(device, "DROP TABLE players", to: Self.withoutPlayers)
        try device.apply([.entry(2, .updated("players", 6, at: 2, ["name": "An"]))], reaching: 2)
        let parked = try device.store.parked()
        #expect(parked.map(\.reason) == [.stale])
        #expect(parked[0].changes[0].theirs?["name"] == "An")
    }

    @Test("values of unknown attributes outlive a rebase, and end with their record")
    func asideOfKnownType() throws {
        let device = try device()
        try device.apply(
            [.entry(2, .updated("teams", 5, at: 2, ["motto": "Up", "city": "Bonn"]))], reaching: 2)
        try device.write { try $0.update("teams", .integer(5), ["name": "Hawks"]) }
        try moveAll(device, to: 3)
        let set = try device.gather().changeSets[0].identifier ?? ""
        try device.apply(
            [.entry(4, own: set, .updated("teams", 5, at: 4, ["name": "Hawks"]))], reaching: 4)
        #expect(try aside(device) == ["teams 5": ["motto": "Up"]])
        try device.apply(
            [.entry(5, TypeChanges(name: "teams", delete: [.integer(5)]))], reaching: 5)
        #expect(try aside(device).isEmpty)
    }

    @Test("what a migration of the server adds to a record makes no edit stale")
    func announcedColumn() throws {
        let device = try device()
        try device.write { try $0.update("teams", .integer(5), ["name": "Hawks"]) }
        try device.apply([.entry(2, .updated("teams", 5, at: 1, ["motto": "Up"]))], reaching: 2)
        #expect(try device.store.parkedCount == 0)
        #expect(try device.rows("SELECT name FROM teams") == [["Hawks"]])
        #expect(try device.gather().changeSets[0].types[0].entries[0].revision == 1)
        // An entry of the same revision that somebody wrote does.
        let other = try self.device()
        try other.write { try $0.update("teams", .integer(5), ["name": "Hawks"]) }
        try other.apply([.entry(2, .updated("teams", 5, at: 2, ["city": "Bonn"]))], reaching: 2)
        #expect(try other.store.parked().map(\.reason) == [.stale])
    }
}
