import MartletModel
import MartletProtocol
import MartletStore
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// Tests external writes to a device's file that no set can carry.
@Suite("Withheld records")
struct WithheldTests {
    static let script = """
        CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT, r REAL, code TEXT UNIQUE);
        CREATE TABLE players(
            id INTEGER PRIMARY KEY, team_id INTEGER REFERENCES teams(id) ON DELETE CASCADE,
            name TEXT);
        """

    /// Teams 1 and 2.
    private static func device(
        _ script: String = WithheldTests.script
    ) throws -> DeviceFixture {
        let device = try DeviceFixture(script: script)
        try device.apply(
            [
                .entry(
                    1, .created("teams", 1, at: 1, ["name": "Owls", "r": 1.5]),
                    .created("teams", 2, at: 1, ["name": "Jays"]))
            ], reaching: 1)
        return device
    }

    /// Another program on the device's file.
    private static func shell(_ sql: String, on device: SmallDevice) throws {
        let connection = try Connection(
            path: "device.sqlite", mode: .readWrite, vfs: device.disk.vfsName)
        try connection.execute(sql)
    }

    private static func shown(_ device: DeviceFixture) throws -> [[SQLValue]] {
        try device.rows("SELECT id, name, CAST(r AS TEXT) FROM teams ORDER BY id")
    }

    @Test("no other new record gets the key of one that waits")
    func keyIsTaken() throws {
        let device = try Self.device()
        try device.shell("INSERT INTO teams(id, r) VALUES ((SELECT id FROM martlet_new_id), 9e999)")
        try device.write { try $0.update("teams", .integer(2), ["name": "Larks"]) }
        #expect(try device.store.withheld().map(\.id) == [.integer(-2)])
        #expect(try device.write { try $0.insert("teams", ["name": "Rooks"]) } == .integer(-3))
        try device.shell(
            "INSERT INTO teams(id, name) VALUES ((SELECT id FROM martlet_new_id), 'Daws')")
        #expect(try device.rows("SELECT id FROM teams WHERE id < 0") == [[-4], [-3], [-2]])
        let queued = try device.gather().changeSets.map { $0.types[0].create }
        #expect(queued == [[], [.integer(-3)], [.integer(-4)]])
    }

    @Test(
        "the record waits, named, and everything else goes on",
        arguments: [
            ("UPDATE teams SET r = 9e999, name = 'Kites' WHERE id = 1", "column “r” holds an inf"),
            ("UPDATE teams SET name = x'ff00' WHERE id = 1", "column “name” holds binary data"),
            ("UPDATE teams SET name = CAST(x'c328' AS TEXT) WHERE id = 1", "not UTF-8"),
            (
                "UPDATE teams SET r = 'much' WHERE id = 1",
                "column “r” does not fit: expected a number"
            ),
            ("UPDATE teams SET name = 'a' || char(0) WHERE id = 1", "column “name” does not fit"),
        ])
    func waits(sql: String, reason: String) throws {
        let device = try Self.device()
        try device.shell(sql + "; INSERT INTO teams(id, name) VALUES (-2, 'Rooks')")
        try device.write { try $0.update("teams", .integer(2), ["name": "Larks"]) }
        let waiting = try device.store.withheld()
        #expect(waiting.map(\.type) == ["teams"] && waiting.map(\.id) == [.integer(1)])
        #expect(waiting[0].message.contains(reason), "\(waiting[0].message)")
        #expect(try device.store.withheldCount == 1)
        #expect(device.store.takeNewlyWithheld() == 1)
        let sets = try device.gather().changeSets
        #expect(
            sets.map { $0.types[0].create + $0.types[0].update }
                == [[-2], [2]].map { ids in
                    ids.map { RecordID.integer($0) }
                })
        try device.reopen(script: Self.script)
        #expect(try device.store.withheld().count == 1)
        #expect(try device.store.contradiction() == nil)
        // A save of the app gives it another value.
        try device.write { try $0.update("teams", .integer(1), ["name": "Wrens", "r": 2.5]) }
        #expect(try device.store.withheld().isEmpty)
        let last = try #require(try device.gather().changeSets.last?.types[0])
        #expect(last.update == [.integer(1)])
        #expect(last.entries[0].revision == 1)
        #expect(last.entries[0].attributes == ["name": "Wrens", "r": 2.5])
        #expect(try device.store.contradiction() == nil)
    }

    @Test("what was written stays as it was through remote change, and is judged by what it was on")
    func underRemote() throws {
        let device = try Self.device()
        try device.shell("UPDATE teams SET name = x'ff', r = -9e999 WHERE id = 1")
        try device.apply(
            [.entry(2, .updated("teams", 1, at: 2, ["code": "c", "r": 7.0]))], reaching: 2)
        #expect(
            try device.rows("SELECT hex(name), CAST(r AS TEXT), code FROM teams WHERE id = 1")
                == [["FF", "-Inf", "c"]])
        try device.reopen(script: Self.script)
        // Everything arrives once more, as whole rows.
        _ = try device.gather()
        try device.apply(
            [
                DeviceFixture.difference(
                    3,
                    TypeChanges(
                        name: "teams", update: [.integer(1)],
                        entries: [
                            RecordEntry(
                                id: .integer(1), revision: 3,
                                attributes: ["name": "Hens", "code": "d"])
                        ]))
            ], reaching: 3)
        #expect(
            try device.rows("SELECT hex(name), CAST(r AS TEXT), code FROM teams WHERE id = 1")
                == [["FF", "-Inf", "d"]])
        try device.shell("UPDATE teams SET name = 'Kites', r = 3 WHERE id = 1")
        let set = try #require(try device.gather().changeSets.last)
        #expect(set.types[0].entries[0].revision == 1)
        #expect(set.types[0].entries[0].attributes == ["name": "Kites", "r": 3.0])
        #expect(try device.store.withheld().isEmpty)
    }

    @Test("a record that others deleted stays gone, and what it was given is still named")
    func deletedWhileWithheld() throws {
        let device = try Self.device()
        try device.shell("UPDATE teams SET r = 9e999 WHERE id = 1")
        try device.apply(
            [.entry(2, TypeChanges(name: "teams", delete: [.integer(1)]))], reaching: 2)
        #expect(try Self.shown(device) == [[2, "Jays", .null]])
        #expect(try device.store.withheld().map(\.id) == [.integer(1)])
        try device.write { try $0.update("teams", .integer(2), ["name": "Larks"]) }
        #expect(try device.gather().changeSets.count == 1)
        // Another record's turn makes no deletion of it.
        try device.shell("UPDATE teams SET r = 9e999 WHERE id = 2")
        _ = try device.gather()
        try device.shell("UPDATE teams SET name = 'Kites' WHERE id = 2")
        #expect(try device.gather().changeSets.flatMap(\.types).flatMap(\.delete).isEmpty)
        let waiting = try device.store.withheld()
        #expect(waiting.map(\.id) == [.integer(1), .integer(2)])
        #expect(waiting.map(\.isShown) == [false, true])
        for record in waiting { try device.write { _ in try device.store.drop(record) } }
        #expect(try device.store.withheld().isEmpty)
        #expect(try Self.shown(device) == [[2, "Larks", .null]])
        #expect(try device.gather().changeSets.count == 1)
        #expect(try device.store.contradiction() == nil)
    }

    @Test(
        "an edit that others leave no room for is kept, and what is written meanwhile is another",
        arguments: ["ABORT", "REPLACE", "IGNORE", "ROLLBACK"])
    func noRoom(clause: String) throws {
        let device = try Self.device(
            Self.script.replacing("UNIQUE", with: "UNIQUE ON CONFLICT \(clause)"))
        try device.shell("UPDATE teams SET r = 9e999, code = 'c' WHERE id = 1")
        try device.apply([.entry(2, .updated("teams", 2, at: 2, ["code": "c"]))], reaching: 2)
        #expect(try device.store.withheld().map(\.isShown) == [false])
        #expect(try Self.shown(device) == [[1, "Owls", "1.5"], [2, "Jays", .null]])
        try device.write { try $0.update("teams", .integer(1), ["name": "Wrens"]) }
        let set = try #require(try device.gather().changeSets.first)
        #expect(set.types[0].entries[0].attributes == ["name": "Wrens"])
        #expect(try device.store.withheld().count == 1)
        try device.apply(
            [
                .entry(3, own: set.identifier, .updated("teams", 1, at: 3, ["name": "Wrens"])),
                .entry(4, .updated("teams", 2, at: 4, ["code": .null])),
            ], reaching: 4)
        #expect(try device.store.withheld().map(\.isShown) == [true])
        #expect(
            try device.rows("SELECT name, code, CAST(r AS TEXT) FROM teams WHERE id = 1")
                == [["Wrens", "c", "Inf"]])
        try device.shell("UPDATE teams SET r = 2 WHERE id = 1")
        let last = try #require(try device.gather().changeSets.last?.types[0].entries[0])
        #expect(last.revision == 3)
        #expect(last.attributes == ["r": 2.0, "code": "c"])
        #expect(try device.store.contradiction() == nil)
    }

    @Test(
        "a new record that others leave no room for is kept, and takes nobody's place",
        arguments: ["ABORT", "REPLACE", "IGNORE", "ROLLBACK"])
    func noRoomForNew(clause: String) throws {
        let device = try Self.device(
            Self.script.replacing("UNIQUE", with: "UNIQUE ON CONFLICT \(clause)"))
        try device.shell("INSERT INTO teams(id, name, code) VALUES (-2, x'ff', 'c')")
        try device.apply([.entry(2, .updated("teams", 2, at: 2, ["code": "c"]))], reaching: 2)
        #expect(try device.store.withheld().map(\.isShown) == [false])
        #expect(
            try device.rows("SELECT id, code FROM teams ORDER BY id") == [[1, .null], [2, "c"]])
        try device.apply([.entry(3, .updated("teams", 2, at: 3, ["code": .null]))], reaching: 3)
        #expect(try device.store.withheld().map(\.isShown) == [true])
        #expect(
            try device.rows("SELECT hex(name), code FROM teams WHERE id = -2") == [["FF", "c"]])
    }

    @Test("a new record that is given up goes with what waits for it")
    func givenUpWithheldRecord() throws {
        let device = try Self.device()
        try device.shell(
            """
            INSERT INTO teams(id, name) VALUES (-2, x'ff');
            INSERT INTO players(id, team_id) VALUES (-2, -2)
            """)
        #expect(try device.gather().changeSets.isEmpty)
        let team = try #require(try device.store.withheld().first { $0.type == "teams" })
        try device.write { _ in try device.store.drop(team) }
        #expect(try device.store.withheld().isEmpty)
        #expect(
            try device.rows("SELECT (SELECT count(*) FROM teams), count(*) FROM players")
                == [[2, 0]])
        #expect(try device.gather().changeSets.isEmpty)
        #expect(try device.store.contradiction() == nil)
    }

    @Test("a device that refetches takes them along, and deletes nothing")
    func refetchWithWithheld() throws {
        let world = try SmallWorld("withheld-anew")
        let device = try world.device()
        try device.write { try $0.insert("teams", ["name": "a"]) }
        try device.sync(with: world.server)
        try Self.shell(
            """
            UPDATE teams SET name = x'ff' WHERE id = 1;
            INSERT INTO teams(id, name) SELECT id, x'00' FROM martlet_new_id
            """, on: device)
        try device.sync(with: world.server)
        try device.beginRefetching()
        #expect(try device.store.withheld().map(\.isShown) == [false, false])
        try device.sync(with: world.server)
        #expect(device.errors.isEmpty)
        #expect(try device.store.withheld().map(\.isShown) == [true, true])
        #expect(
            try device.store.local.rows("SELECT id, hex(name) FROM teams ORDER BY id DESC")
                .map(\.values) == [[1, "FF"], [-3, "00"]])
        #expect(try device.store.outboxCount == 0)
    }

    @Test("a new record waits with what refers to it, and goes out with it under one id")
    func madeWhileWithheld() throws {
        let world = try SmallWorld("withheld-made")
        let device = try world.device()
        try device.write { try $0.insert("teams", ["name": "a"]) }
        try Self.shell(
            """
            INSERT INTO players(id, team_id, name) SELECT id, -7, 'p' FROM martlet_new_id;
            INSERT INTO teams(id, name) VALUES (-7, x'00ff');
            INSERT INTO players(id, name) SELECT id, 'q' FROM martlet_new_id;
            """, on: device)
        try device.sync(with: world.server)
        #expect(try device.store.withheld().map(\.type).sorted() == ["players", "teams"])
        try device.write { try $0.insert("teams", ["name": "b"]) }
        try device.sync(with: world.server)
        #expect(
            try device.store.local.rows("SELECT count(*) FROM teams WHERE id < 0").map(\.values)
                == [[1]])
        try Self.shell("UPDATE teams SET name = 'c' WHERE id < 0", on: device)
        try device.sync(with: world.server)
        #expect(try device.store.withheld().isEmpty)
        #expect(try device.store.parked().map(\.message) == [])
        #expect(try device.store.outboxCount == 0)
        let other = try world.device()
        try other.sync(with: world.server)
        #expect(
            try other.store.local.rows(
                "SELECT players.name, teams.name FROM players LEFT JOIN teams"
                    + " ON teams.id = team_id ORDER BY players.name"
            ).map(\.values) == [["p", "c"], ["q", .null]])
    }

    @Test("a save of the app that leaves such a value in is refused and says where it is")
    func save() throws {
        let device = try Self.device()
        #expect {
            try device.write { _ = try $0.rows("UPDATE teams SET r = 9e999 WHERE id = 1") }
        } throws: { error in
            let message = "\(error)"
            return message.contains("record 1 of teams") && message.contains("column “r”")
        }
        #expect(try Self.shown(device)[0] == [1, "Owls", "1.5"])
        #expect(try device.store.withheld().isEmpty)
    }

    @Test("a withheld record that is brought back to what it was waits no more")
    func back() throws {
        let device = try Self.device()
        try device.shell("UPDATE teams SET r = 9e999 WHERE id = 1")
        try device.write { try $0.insert("teams", ["name": "x"]) }
        #expect(try device.store.withheld().count == 1)
        try device.shell("UPDATE teams SET r = 1.5 WHERE id = 1")
        #expect(try device.gather().changeSets.count == 1)
        #expect(try device.store.withheld().isEmpty)
        #expect(try device.store.contradiction() == nil)
        #expect(try device.rows("SELECT count(*) FROM martlet_withheld_values") == [[0]])
    }

    @Test("a renamed column takes along what waits in it, and a migration is not stopped by it")
    func migrated() async throws {
        let device = try Self.device()
        try device.shell("UPDATE teams SET r = 9e999 WHERE id = 1")
        _ = try device.gather()
        try device.shell("UPDATE teams SET name = 'other' WHERE id = 1")
        try device.reopen(
            script: Self.script.replacing("code TEXT UNIQUE", with: "code TEXT UNIQUE, more TEXT"))
        #expect(try device.store.withheld().map(\.id) == [.integer(1)])
        #expect(try Self.shown(device)[0] == [1, "other", "Inf"])
    }

    @Test("the check passes over it, and finds what else differs")
    func checkPassesWithheld() async throws {
        let server = try CheckServer(script: Self.script)
        try await server.send(
            """
            {"types":["teams"],"teams":{"create":[-1,-2],"update":[],"delete":[],
            "attributes":{"-1":{"name":"Eagles","r":1.5},"-2":{"name":"Owls"}}}}
            """)
        let device = try await TestClient(server, script: Self.script)
        try await device.client.sync()
        try DeviceFixture.shell("UPDATE teams SET r = 9e999 WHERE id = 1", path: device.path)
        let report = try await device.client.check(repairing: .revert)
        #expect(report.findings.isEmpty)
        #expect(device.text("SELECT r FROM teams WHERE id = 1") == "Inf")
        try await device.client.sync()
        #expect(try await device.client.withheld().map(\.id) == [.integer(1)])
        let status = try await device.client.status()
        #expect(status.withheld == 1 && status.outbox == 0)
        let record = try #require(try await device.client.withheld().first)
        #expect(record.isShown)
        try await device.client.drop(record)
        #expect(try await device.client.withheld().isEmpty)
        #expect(device.text("SELECT r FROM teams WHERE id = 1") == "1.5")
        let after = try await device.client.status()
        #expect(after.withheld == 0 && after.outbox == 0)
        let error = await #expect(throws: StoreError.self) {
            try await device.client.drop(record)
        }
        #expect(error?.kind == .unknown)
    }
}
