import MartletProtocol
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// Tests what the server sent while another program had a column or a table away, and what the device does not show
/// afterwards: an edit of such a record must not override it.
@Suite("Values that came meanwhile and do not show")
struct UnseenReturnTests {
    private static let script =
        "CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT)"

    /// Teams 1 and 2.
    private static func device() throws -> DeviceFixture {
        let device = try DeviceFixture(script: script)
        try device.apply(
            [
                .entry(
                    1, .created("teams", 1, at: 1, ["name": "Owls", "city": "Rome"]),
                    .created("teams", 2, at: 1, ["name": "Jays", "city": "Bonn"]))
            ], reaching: 1)
        return device
    }

    /// Changes a city while the column has another name.
    private static func changeCity(of id: Int64, to city: Value, _ device: DeviceFixture) throws {
        try device.shell("ALTER TABLE teams RENAME COLUMN city TO town")
        try device.reopen(script: nil)
        try device.apply(
            [.entry(2, .updated("teams", id, at: 2, ["city": city]))], reaching: 2)
    }

    private static func bringBack(_ device: DeviceFixture) throws {
        try device.shell("ALTER TABLE teams RENAME COLUMN town TO city")
        try device.reopen(script: nil)
    }

    /// The revisions on which the device bases what it would send now.
    private static func bases(_ device: DeviceFixture) throws -> [Revision?] {
        try device.gather().changeSets.flatMap(\.types).flatMap(\.entries).map(\.revision)
    }

    @Test("a record that the tables refuse, once its column is back, is edited as the earlier one")
    func quarantined() throws {
        let device = try Self.device()
        try device.shell("CREATE UNIQUE INDEX narrow ON teams(city)")
        try device.reopen(script: nil)
        try Self.changeCity(of: 2, to: "Rome", device)
        try Self.bringBack(device)
        #expect(try device.store.quarantinedCount == 1)
        #expect(try device.rows("SELECT city FROM teams WHERE id = 2") == [["Bonn"]])
        try device.shell("UPDATE teams SET city = 'Bern' WHERE id = 2")
        #expect(try Self.bases(device) == [1])
        #expect(try device.store.contradiction() == nil)
    }

    @Test("a record that the tables refuse stays in quarantine, whole, when a column is back")
    func quarantinedBefore() throws {
        let device = try Self.device()
        try device.shell(
            "CREATE UNIQUE INDEX narrow ON teams(name); ALTER TABLE teams RENAME COLUMN city TO town"
        )
        try device.reopen(script: nil)
        // What is aside came before the record was refused.
        try device.apply(
            [.entry(2, .updated("teams", 2, at: 2, ["city": "Paris"]))], reaching: 2)
        _ = try device.gather()
        let whole = TypeChanges.updated("teams", 2, at: 3, ["name": "Owls", "city": "Paris"])
        try device.apply([DeviceFixture.difference(3, whole)], reaching: 3)
        #expect(try device.store.quarantinedCount == 1)
        try Self.bringBack(device)
        let kept = try device.store.quarantined()
        #expect(kept.map(\.revision) == [3])
        #expect(kept.first?.attributes == ["name": "Owls", "city": "Paris"])
        try device.shell("UPDATE teams SET name = 'Rooks' WHERE id = 2")
        let bases = try Self.bases(device)
        #expect(!bases.isEmpty && bases.allSatisfy { $0 ?? 0 < 3 })
        #expect(try device.store.contradiction() == nil)
    }

    @Test(
        "a value that was withheld meanwhile, and can be sent afterwards, is one of the earlier record"
    )
    func withheldWhileColumnAway() throws {
        let device = try Self.device()
        try Self.changeCity(of: 1, to: "Paris", device)
        try device.shell("UPDATE teams SET town = x'00', name = 'Hens' WHERE id = 1")
        #expect(try device.gather().changeSets.isEmpty)
        try Self.bringBack(device)
        #expect(try device.store.withheld().count == 1)
        try device.shell("UPDATE teams SET city = 'Bern' WHERE id = 1")
        #expect(try Self.bases(device) == [1])
        #expect(try device.store.contradiction() == nil)
    }

    @Test("a withheld edit that does not name the column is judged as always")
    func withheldBeside() throws {
        let device = try Self.device()
        try Self.changeCity(of: 1, to: "Paris", device)
        try device.shell("UPDATE teams SET name = x'00' WHERE id = 1")
        #expect(try device.gather().changeSets.isEmpty)
        try Self.bringBack(device)
        try device.shell("UPDATE teams SET name = 'Hens' WHERE id = 1")
        #expect(try Self.bases(device) == [2])
        #expect(try device.rows("SELECT city FROM teams WHERE id = 1") == [["Paris"]])
    }

    /// Has the server take a new team while another program has the table away, and somebody else change it.
    private static func newTeam(_ device: DeviceFixture, isWhole: Bool) throws {
        try device.shell("INSERT INTO teams(id, name, city) VALUES (-2, 'Rooks', 'Metz')")
        let identifier = try device.gather().changeSets.first?.identifier
        try device.shell("ALTER TABLE teams RENAME TO elsewhere")
        try device.reopen(script: nil)
        try device.apply(
            [
                .entry(
                    2, own: identifier,
                    .created("teams", 3, old: -2, at: 2, ["name": "Rooks", "city": "Metz"]))
            ], reaching: 2)
        _ = try device.gather()
        guard isWhole else {
            try device.apply(
                [.entry(3, .updated("teams", 3, at: 3, ["city": .null]))], reaching: 3)
            return
        }
        let whole = TypeChanges(
            name: "teams", update: [.integer(3)],
            entries: [
                RecordEntry(id: .integer(3), revision: 3, attributes: ["name": "Rooks"])
            ])
        try device.apply([DeviceFixture.difference(3, whole)], reaching: 3)
    }

    @Test(
        "an edit of a new record that others changed while its table was away is refused",
        arguments: [false, true])
    func newRecord(isWhole: Bool) throws {
        let device = try Self.device()
        try Self.newTeam(device, isWhole: isWhole)
        try device.shell(
            """
            UPDATE elsewhere SET city = 'Bern' WHERE id = -2;
            ALTER TABLE elsewhere RENAME TO teams;
            """)
        try device.reopen(script: nil)
        #expect(try Self.bases(device).isEmpty)
        #expect(try device.store.parked().map(\.reason) == [.stale])
        #expect(try device.rows("SELECT id, city FROM teams WHERE id > 2") == [[3, .null]])
        try device.shell("UPDATE teams SET city = 'Bern' WHERE id = 3")
        #expect(try Self.bases(device) == [3])
        #expect(try device.store.contradiction() == nil)
    }

    @Test("an edit of a new record that nobody else changed while its table was away goes out")
    func newTextRecord() throws {
        let device = try DeviceFixture(script: "CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT)")
        try device.shell("INSERT INTO notes VALUES ('n', 'first')")
        let identifier = try device.gather().changeSets.first?.identifier
        try device.shell("ALTER TABLE notes RENAME TO elsewhere")
        try device.reopen(script: nil)
        let made = TypeChanges(
            name: "notes", create: [.text("n")],
            entries: [
                RecordEntry(id: .text("n"), revision: 2, attributes: ["body": "first"])
            ])
        try device.apply([.entry(2, own: identifier, made)], reaching: 2)
        try device.shell(
            "UPDATE elsewhere SET body = 'second'; ALTER TABLE elsewhere RENAME TO notes")
        try device.reopen(script: nil)
        #expect(try Self.bases(device) == [2])
        #expect(try device.store.parkedCount == 0)
        #expect(try device.rows("SELECT body FROM notes") == [["second"]])
        #expect(try device.store.contradiction() == nil)
    }

    @Test("a column that was away when a snapshot came has the server's nulls, and not its default")
    func snapshotWhileColumnAway() throws {
        let lazy = try LazyWorld("lazy-away")
        try lazy.others { try $0.update("teams", .integer(1), ["city": .null]) }
        try lazy.others { try $0.update("teams", .integer(2), ["city": "Rome"]) }
        lazy.mine.snapshot = try lazy.world.server.snapshot(LazyWorld.plan)
        lazy.mine.heldBack = []
        try lazy.mine.connection().execute("ALTER TABLE teams RENAME COLUMN city TO town")
        lazy.mine.close()
        try lazy.mine.open(script: nil)
        try lazy.sync()
        try lazy.mine.connection().execute("ALTER TABLE teams RENAME COLUMN town TO city")
        lazy.mine.close()
        try lazy.mine.open()
        #expect(
            try lazy.shown("SELECT city FROM teams WHERE id < 4 ORDER BY id") == [
                [.null], ["Rome"], ["Oslo"],
            ])
        try lazy.expectWhole()
    }

    @Test("a deletion vouches for no other record while one that came does not show")
    func deletions() throws {
        let device = try Self.device()
        func seen() throws -> [Revision?] {
            try device.reopen(script: nil)
            return try device.gather().changeSets.map(\.seen)
        }
        try device.shell("DELETE FROM teams WHERE id = 1")
        #expect(try seen() == [1])
        // What refers to team 2 by a column or a table that is not here cannot be known.
        try device.apply(
            [.entry(2, .created("players", 1, at: 2, ["name": "Ida", "team_id": 2]))], reaching: 2)
        try device.shell("UPDATE teams SET city = 'Bern' WHERE id = 2")
        #expect(try seen() == [1, 2])
        try device.shell("DELETE FROM teams WHERE id = 2")
        #expect(try seen() == [1, 2, 0])
        #expect(try device.store.contradiction() == nil)
    }

    @Test("a deletion that joins an earlier set takes along that it has not seen all")
    func joinedDeletion() throws {
        let device = try Self.device()
        try device.apply(
            [.entry(2, .updated("teams", 1, at: 2, ["motto": "Fly"]))], reaching: 2)
        try device.shell("UPDATE teams SET city = 'Bern' WHERE id = 1")
        try device.shell("DELETE FROM teams WHERE id = 2")
        #expect(try device.gather().changeSets.map(\.seen).last == 0)
    }

    @Test("an edit on top of one that waits for its verdict is based on what that one is based on")
    func editOnTopOfAnother() throws {
        let device = try Self.device()
        try device.write { try $0.update("teams", .integer(1), ["city": "Bern"]) }
        #expect(try Self.bases(device) == [1])
        // The answer has no verdict, and others' change comes in under the edit, which still shows.
        try device.apply(
            [.entry(2, .updated("teams", 1, at: 2, ["city": "Paris"]))], reaching: 2)
        #expect(try device.rows("SELECT city FROM teams WHERE id = 1") == [["Bern"]])
        try device.write { try $0.update("teams", .integer(1), ["city": "Basel"]) }
        #expect(try Self.bases(device) == [1, 1])
    }
}
