import Foundation
import MartletModel
import MartletProtocol
import MartletStore
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("Capture")
struct CaptureTests {
    @Test("one write is one change set with the net change of each record")
    func netChange() throws {
        let device = try DeviceFixture()
        let team = try device.write { context in
            let team = try context.insert("teams", ["name": "Falcons"])
            try context.update("teams", team, ["name": "Hawks"])
            let gone = try context.insert("teams", ["name": "Gone"])
            try context.delete("teams", gone)
            return team
        }
        let request = try device.gather()
        #expect(request.changeSets.count == 1)
        let types = request.changeSets[0].types
        #expect(team == .integer(-2))
        #expect(types.count == 1)
        #expect(types[0].create == [.integer(-2)])
        #expect(types[0].update.isEmpty && types[0].delete.isEmpty)
        #expect(types[0].entries[0].attributes["name"] == "Hawks")
        #expect(types[0].entries[0].attributes["city"] == "Oslo")
    }

    @Test("an update carries its base revision and only what changed")
    func updateIsCaptured() throws {
        let device = try DeviceFixture()
        try device.apply(
            [.entry(7, .created("teams", 5, at: 7, ["name": "Falcons", "city": "Bergen"]))],
            reaching: 7)
        try device.write {
            try $0.update("teams", .integer(5), ["name": "Falcons", "city": "Rome"])
        }
        let set = try device.gather().changeSets[0]
        #expect(set.seen == 7)
        #expect(set.types[0].update == [.integer(5)])
        #expect(set.types[0].entries[0].revision == 7)
        #expect(set.types[0].entries[0].attributes == ["city": "Rome"])
    }

    @Test("a null is sent where the server would put a default in its place, and only there")
    func explicitNull() throws {
        let device = try DeviceFixture()
        try device.write { context in
            try context.insert("teams", ["name": "Falcons", "city": .null])
            try context.insert("players", ["name": "Ann"])
        }
        let types = try device.gather().changeSets[0].types
        #expect(types[0].entries[0].attributes == ["name": "Falcons", "city": .null])
        #expect(types[1].entries[0].attributes == ["name": "Ann"])
    }

    @Test("a write that changes nothing makes no set")
    func noChange() throws {
        let device = try DeviceFixture()
        try device.apply(
            [.entry(1, .created("teams", 5, at: 1, ["name": "Falcons"]))], reaching: 1)
        try device.write { context in
            try context.update("teams", .integer(5), ["name": "Other"])
            try context.update("teams", .integer(5), ["name": "Falcons"])
        }
        #expect(try device.store.outboxCount == 0)
    }

    @Test("a delete lists what cascaded")
    func cascade() throws {
        let device = try DeviceFixture()
        try device.apply(
            [
                .entry(
                    1, .created("teams", 5, at: 1, ["name": "Falcons"]),
                    .created("players", 9, at: 1, ["team_id": 5, "name": "Ann"]))
            ], reaching: 1)
        try device.write { try $0.delete("teams", .integer(5)) }
        let set = try device.gather().changeSets[0]
        #expect(set.types.map(\.name).sorted() == ["players", "teams"])
        #expect(set.types.allSatisfy { $0.delete.count == 1 && $0.entries[0].revision == 1 })
    }

    @Test("a write that throws leaves nothing, and its temporary ids are given again")
    func rollback() throws {
        struct Stop: Error {}
        let device = try DeviceFixture()
        #expect(throws: Stop.self) {
            try device.write { context in
                try context.insert("teams", ["name": "Falcons"])
                throw Stop()
            }
        }
        #expect(try device.store.outboxCount == 0)
        #expect(try device.rows("SELECT count(*) FROM teams") == [[0]])
        #expect(try device.write { try $0.insert("teams", ["name": "A"]) } == .integer(-2))
        #expect(try device.write { try $0.insert("teams", ["name": "B"]) } == .integer(-3))
    }

    @Test("writes of external connections become a set of their own, before the next own one")
    func externalWritesBeforeOwnSet() throws {
        let device = try DeviceFixture()
        try device.shell(
            "INSERT INTO teams(id, name) SELECT id, 'Shell' FROM martlet_new_id;"
                + "INSERT INTO teams(id, name) SELECT id, 'Shell 2' FROM martlet_new_id;")
        let own = try device.write { try $0.insert("teams", ["name": "Own"]) }
        let sets = try device.gather().changeSets
        #expect(sets.count == 2)
        #expect(sets[0].types[0].create == [.integer(-2), .integer(-3)])
        #expect(own == .integer(-4))
        #expect(sets[1].types[0].create == [.integer(-4)])
    }

    @Test("an external REPLACE without recursive triggers keeps the old images")
    func replaceWithoutRecursiveTriggers() throws {
        let device = try DeviceFixture()
        try device.apply(
            [
                .entry(1, .created("players", 1, at: 1, ["name": "Ann", "shirt": 10])),
                .entry(2, .created("players", 2, at: 2, ["name": "Bea", "shirt": 20])),
            ], reaching: 2)
        // Replaces row 1 by its key and deletes row 2 by its shirt, without firing its trigger.
        try device.shell("REPLACE INTO players(id, name, shirt) VALUES (1, 'Cia', 20)")
        let set = try device.gather().changeSets[0]
        #expect(set.types[0].update == [.integer(1)])
        #expect(set.types[0].delete == [.integer(2)])
        #expect(set.types[0].entries[0].attributes == ["name": "Cia", "shirt": 20])
        // Refused, both rows come back as they were.
        try device.apply([.refusal(set.identifier ?? "", .permission)], reaching: 2)
        #expect(
            try device.rows("SELECT id, name, shirt FROM players ORDER BY id")
                == [[1, "Ann", 10], [2, "Bea", 20]])
    }

    @Test("an external upsert and a no-op are told apart")
    func upsert() throws {
        let device = try DeviceFixture()
        try device.apply(
            [.entry(1, .created("players", 1, at: 1, ["name": "Ann", "shirt": 10]))], reaching: 1)
        try device.shell("INSERT OR IGNORE INTO players(id, name) VALUES (1, 'Nobody')")
        #expect(try device.gather().changeSets.isEmpty)
        try device.shell(
            "INSERT INTO players(id, name) VALUES (1, 'Cia')"
                + " ON CONFLICT (id) DO UPDATE SET name = excluded.name")
        let set = try device.gather().changeSets[0]
        #expect(set.types[0].update == [.integer(1)])
        #expect(set.types[0].entries[0].attributes == ["name": "Cia"])
    }

    @Test(
        "keys the server would not take are refused with what to do",
        arguments: [
            ("INSERT INTO teams(name) VALUES ('x')", "martlet_new_id"),
            ("INSERT INTO teams(id, name) VALUES (7, 'x')", "martlet_new_id"),
            ("INSERT INTO notes(body) VALUES ('x')", "non-empty text"),
            ("INSERT INTO notes(id, body) VALUES ('', 'x')", "non-empty text"),
        ])
    func keysRefusedByServer(sql: String, hint: String) throws {
        let device = try DeviceFixture()
        let error = #expect(throws: SQLiteError.self) { try device.shell(sql) }
        #expect(error?.message.contains(hint) == true)
        #expect(try device.store.local.hasCapture == false)
    }

    @Test("the key of a record cannot be changed")
    func keyChange() throws {
        let device = try DeviceFixture()
        try device.apply(
            [.entry(1, .created("teams", 5, at: 1, ["name": "Falcons"]))], reaching: 1)
        let error = #expect(throws: SQLiteError.self) {
            try device.shell("UPDATE teams SET id = 6 WHERE id = 5")
        }
        #expect(error?.message.contains("cannot be changed") == true)
    }

    @Test("a transaction too large ever to send is refused when it is written")
    func tooLargeTransaction() throws {
        let device = try DeviceFixture()
        let half = String(repeating: "x", count: Limits.savedSetBytes / 2)
        let error = #expect(throws: StoreError.self) {
            try device.write { context in
                try context.insert("notes", ["body": .text(half)])
                try context.insert("notes", ["body": .text(half)])
            }
        }
        #expect(error?.kind == .tooLarge)
        #expect(try device.rows("SELECT count(*) FROM notes") == [[0]])
        #expect(try device.store.outboxCount == 0)
        try device.write { try $0.insert("notes", ["body": .text(half)]) }
        #expect(try device.store.outboxCount == 1)
    }

    @Test("a table that already holds records is refused")
    func adopted() throws {
        let device = try DeviceFixture()
        let other = device.folder.appendingPathComponent("old.sqlite").path
        let connection = try Connection(path: other)
        try connection.execute(
            "CREATE TABLE teams(id INTEGER PRIMARY KEY); INSERT INTO teams VALUES (3)")
        let error = #expect(throws: StoreError.self) {
            _ = try DeviceStore(path: other, script: nil, randomBits: { 1 })
        }
        #expect(error?.kind == .file)
    }

    @Test("a new column and a new table are captured after the next opening")
    func migrationIsCaptured() throws {
        let device = try DeviceFixture()
        try device.write { try $0.insert("teams", ["name": "Falcons"]) }
        try device.reopen(
            script: DeviceFixture.script.replacing(
                "name TEXT NOT NULL, city", with: "name TEXT NOT NULL, size INTEGER, city")
                + "CREATE TABLE halls(id INTEGER PRIMARY KEY, label TEXT);")
        try device.write { context in
            try context.update("teams", .integer(-2), ["size": 12])
            try context.insert("halls", ["label": "North"])
        }
        let sets = try device.gather().changeSets
        #expect(sets.count == 2)
        #expect(sets[1].types.map(\.name).sorted() == ["halls", "teams"])
    }
}
