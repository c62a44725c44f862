import Foundation
import MartletModel
import MartletStore
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("Self-check and repair")
struct RepairTests {
    /// A device in step with a server of 40 players in 2 teams, and some notes.
    private struct World {
        let server: CheckServer
        let device: TestClient

        init() async throws {
            server = try CheckServer()
            try await server.send(
                """
                {"types":["teams"],"teams":{"create":[-1,-2],"update":[],"delete":[],
                "attributes":{"-1":{"name":"Eagles"},"-2":{"name":"Owls","city":"Rome"}}}}
                """)
            let players = (1...40).map {
                #""-\#($0)":{"team_id":1,"name":"p\#($0)","shirt":\#($0)}"#
            }
            let ids = (1...40).map { "-\($0)" }.joined(separator: ",")
            try await server.send(
                """
                {"types":["players","notes"],"players":{"create":[\(ids)],"update":[],"delete":[],
                "attributes":{\(players.joined(separator: ","))}},
                "notes":{"create":["a","b"],"update":[],"delete":[],
                "attributes":{"a":{"body":"x"},"b":{}}}}
                """)
            device = try await TestClient(server)
            try await device.client.sync()
        }

        /// Writes by another program with capture off.
        func tamper(_ sql: String) throws {
            try DeviceFixture.shell(
                "UPDATE martlet_control SET capture = 0; \(sql);"
                    + " UPDATE martlet_control SET capture = 1", path: device.path)
        }

        var everything: String? {
            device.text(
                """
                SELECT group_concat(line, char(10)) FROM (
                    SELECT id || '|' || name || '|' || city AS line FROM teams UNION ALL
                    SELECT * FROM (SELECT id || '|' || ifnull(team_id, '-') || '|' || name || '|'
                        || ifnull(shirt, '-') FROM players ORDER BY id) UNION ALL
                    SELECT id || '|' || ifnull(body, '-') FROM notes)
                """)
        }

        func check(_ manner: CheckRepair = .revert) async throws -> [String] {
            let report = try await device.client.check(repairing: manner)
            #expect(report.unfinishedTypes.isEmpty && report.unknownTypes.isEmpty)
            return report.findings.map {
                "\($0.type) \($0.id) \($0.reason.rawValue) \($0.outcome.rawValue)"
            }.sorted()
        }
    }

    @Test("nothing is found where nothing differs, with edits queued and others just accepted")
    func equal() async throws {
        let world = try await World()
        #expect(try await world.check() == [])
        try await world.device.run("UPDATE players SET name = 'q' WHERE id = 3")
        try await world.device.run("DELETE FROM players WHERE id = 4")
        try await world.device.insert(Player(id: nil, team_id: 2, name: "new", shirt: 77))
        try await world.device.run("INSERT INTO notes VALUES ('c', 'y')")
        #expect(try await world.check() == [])
        let report = try await world.device.client.check()
        #expect(report.recordCount == 2 + 40 + 3)
        #expect(!report.isCaptureRestored)
    }

    @Test("what was changed, deleted or inserted with capture off is reverted")
    func reverted() async throws {
        let world = try await World()
        let before = world.everything
        try world.tamper(
            """
            UPDATE players SET name = 'x', shirt = 41 WHERE id = 7; DELETE FROM players WHERE id = 9;
            INSERT INTO players VALUES (99, 1, 'extra', NULL); UPDATE notes SET body = x'00ff';
            INSERT INTO notes VALUES ('z', 'extra')
            """)
        #expect(world.everything != before)
        let expected = [
            "notes a uncaptured repaired", "notes b uncaptured repaired",
            "notes z uncaptured repaired", "players 7 uncaptured repaired",
            "players 9 uncaptured repaired", "players 99 uncaptured repaired",
        ]
        #expect(try await world.check() == expected)
        #expect(world.everything == before)
        #expect(try await world.check() == [])
        #expect(try await world.device.client.status().outbox == 0)
    }

    @Test(
        "new records under temporary keys that nobody saw are found, and keys are given below them",
        arguments: [CheckRepair.revert, .capture])
    func temporaryKeys(_ manner: CheckRepair) async throws {
        let world = try await World()
        try await world.device.insert(Player(id: nil, team_id: 2, name: "queued", shirt: 77))
        try world.tamper(
            """
            INSERT INTO players SELECT id, 1, 'unseen', 78 FROM martlet_new_id;
            INSERT INTO players VALUES (-40, -41, 'deep', 79);
            INSERT INTO teams SELECT id, 'Finches', NULL FROM martlet_new_id;
            INSERT INTO teams VALUES (-41, 'Larks', NULL), (60, 'Gulls', NULL)
            """)
        let done = manner == .capture ? "captured" : "repaired"
        #expect(
            try await world.check(manner) == [
                "players -3 uncaptured \(done)", "players -40 uncaptured \(done)",
                "teams -3 uncaptured \(done)", "teams -41 uncaptured \(done)",
                "teams 60 uncaptured \(done)",
            ])
        #expect(try await world.check() == [])
        try await world.device.insert(Player(id: nil, team_id: 2, name: "after", shirt: 80))
        try await world.device.client.sync()
        #expect(try await world.device.client.parked().isEmpty)
        let names = world.device.text(
            "SELECT group_concat(name, ' ') FROM (SELECT name FROM players WHERE shirt > 76 ORDER BY shirt)"
        )
        #expect(names == (manner == .capture ? "queued unseen deep after" : "queued after"))
        let team = world.device.text(
            "SELECT t.name FROM players p JOIN teams t ON t.id = p.team_id WHERE shirt = 79")
        #expect(team == (manner == .capture ? "Larks" : nil))
        #expect(world.device.text("SELECT min(id) > 0 FROM players") == "1")
    }

    @Test("edits that were not captured become change sets where the app wants them")
    func captured() async throws {
        let world = try await World()
        try world.tamper(
            """
            UPDATE players SET name = 'x', shirt = NULL WHERE id = 7;
            DELETE FROM players WHERE id = 9; INSERT INTO teams VALUES (50, 'Larks', NULL);
            INSERT INTO players VALUES (99, 50, 'extra', NULL); INSERT INTO notes VALUES ('z', 'n')
            """)
        let expected = [
            "notes z uncaptured captured", "players 7 uncaptured captured",
            "players 9 uncaptured captured", "players 99 uncaptured captured",
            "teams 50 uncaptured captured",
        ]
        #expect(try await world.check(.capture) == expected)
        try await world.device.client.sync()
        #expect(try await world.device.client.status().parked == 0)
        let server = world.server
        #expect(try await server.text("SELECT name FROM players WHERE id = 7") == "x")
        #expect(try await server.text("SELECT id FROM players WHERE id = 9") == nil)
        #expect(
            try await server.text(
                """
                SELECT p.name || t.name || ifnull(t.city, '-') FROM players AS p
                JOIN teams AS t ON t.id = p.team_id WHERE p.name = 'extra'
                """) == "extraLarks-")
        #expect(try await server.text("SELECT body FROM notes WHERE id = 'z'") == "n")
        #expect(try await world.check() == [])
    }

    @Test(
        "queued edits stay on top of what is repaired", arguments: [CheckRepair.revert, .capture])
    func queued(manner: CheckRepair) async throws {
        let world = try await World()
        try world.tamper("UPDATE players SET name = 'x', shirt = shirt + 60 WHERE id IN (7, 8)")
        let store = try DeviceStore(
            path: world.device.path, script: DeviceFixture.script,
            randomBits: { UInt64.random(in: .min ... .max) })
        try store.write(now: 5) { context in
            _ = try context.rows("UPDATE players SET name = 'mine' WHERE id = 7")
            _ = try context.rows("DELETE FROM players WHERE id = 8")
        }
        var run = CheckRun(repairing: manner, batchRecords: 7)
        while let body = try run.request(store, now: 6) {
            let answer = try await world.server.exchange(body)
            try run.take(answer.body, store, now: 6)
        }
        let found = run.report.findings.map { "\($0.id) \($0.reason) \($0.outcome)" }
        let seventh = manner == .capture ? "captured" : "repaired"
        #expect(found == ["7 uncaptured \(seventh)", "8 uncaptured repaired"])
        let row = "SELECT group_concat(name || shirt) FROM players WHERE id IN (7, 8)"
        let expected = manner == .capture ? "mine67" : "mine7"
        #expect(world.device.text(row) == expected)
        try await world.device.client.sync()
        #expect(try await world.device.client.status().parked == 0)
        #expect(try await world.server.text(row) == expected)
        #expect(try await world.check() == [])
    }

    @Test("what is queued follows new records that were not captured, and comes with them")
    func referred() async throws {
        let world = try await World()
        try world.tamper(
            """
            INSERT INTO teams VALUES (50, 'Larks', NULL), (51, 'Kites', NULL);
            INSERT INTO players VALUES (99, 51, 'extra', NULL), (98, 50, 'rest', NULL);
            UPDATE players SET team_id = 50 WHERE id = 9
            """)
        // Captured writes that refer to them: a change, a new record, and one on top of another.
        let store = try DeviceStore(
            path: world.device.path, script: DeviceFixture.script,
            randomBits: { UInt64.random(in: .min ... .max) })
        for sql in [
            "UPDATE players SET team_id = 50 WHERE id = 7",
            "UPDATE players SET name = 'x', team_id = 51 WHERE id = 8",
            "UPDATE players SET name = 'y' WHERE id = 8",
            "UPDATE players SET name = 'z' WHERE id = 9",
        ] {
            try store.write(now: 5) { _ = try $0.rows(sql) }
        }
        try store.write(now: 5) {
            _ = try $0.insert("players", ["name": "new", "team_id": 50, "shirt": 70])
        }
        var run = CheckRun(repairing: .capture, batchRecords: 7)
        while let body = try run.request(store, now: 6) {
            try run.take(try await world.server.exchange(body).body, store, now: 6)
        }
        #expect(
            run.report.findings.map { "\($0.type) \($0.id) \($0.outcome)" }.sorted() == [
                "players 9 captured", "players 98 captured", "players 99 captured",
                "teams 50 captured", "teams 51 captured",
            ])
        let client = world.device.client
        let teams = """
            SELECT group_concat(line, ' ') FROM (
                SELECT p.name || ':' || t.name AS line FROM players AS p
                JOIN teams AS t ON t.id = p.team_id
                WHERE p.id IN (7, 8, 9) OR p.name IN ('extra', 'rest', 'new') ORDER BY p.name)
            """
        let expected = "extra:Kites new:Larks p7:Larks rest:Larks y:Kites z:Larks"
        #expect(world.device.text(teams) == expected)
        try await client.sync()
        #expect(try await client.parked().map(\.message) == [])
        #expect(try await client.status().outbox == 0)
        #expect(try await world.server.text(teams) == expected)
        #expect(world.device.text(teams) == expected)
        #expect(world.device.text("SELECT min(id) FROM players") == "1")
        #expect(try await world.check() == [])
    }

    @Test("edits of a new record that was not captured become part of it, or follow it")
    func editedSince() async throws {
        let world = try await World()
        try world.tamper(
            """
            INSERT INTO teams VALUES (50, 'Larks', NULL);
            INSERT INTO players VALUES (99, 50, 'a', NULL), (98, 50, 'b', 71);
            INSERT INTO notes VALUES ('z', 'first')
            """)
        let store = try DeviceStore(
            path: world.device.path, script: DeviceFixture.script,
            randomBits: { UInt64.random(in: .min ... .max) })
        for sql in [
            "UPDATE players SET name = 'c' WHERE id IN (1, 99)",
            "UPDATE teams SET city = 'Oslo' WHERE id = 50",
            "UPDATE players SET shirt = 72 WHERE id = 99", "UPDATE notes SET body = 'last'",
            "DELETE FROM players WHERE id = 98",
        ] {
            try store.write(now: 5) { _ = try $0.rows(sql) }
        }
        var run = CheckRun(repairing: .capture, batchRecords: 100)
        while let body = try run.request(store, now: 6) {
            try run.take(try await world.server.exchange(body).body, store, now: 6)
        }
        #expect(
            run.report.findings.map { "\($0.type) \($0.id) \($0.outcome)" }.sorted() == [
                "notes z captured", "players 98 repaired", "players 99 captured",
                "teams 50 captured",
            ])
        let client = world.device.client
        let rows = """
            SELECT p.name || p.shirt || t.name || t.city FROM players AS p
            JOIN teams AS t ON t.id = p.team_id WHERE t.name = 'Larks'
            """
        let others = """
            SELECT group_concat(body || name) FROM notes JOIN players AS p ON p.id = 1
            """
        for expected in [(rows, "c72LarksOslo"), (others, "lastc,lastc,lastc")] {
            #expect(world.device.text(expected.0) == expected.1)
        }
        try await client.sync()
        #expect(try await client.status().outbox == 0)
        for expected in [(rows, "c72LarksOslo"), (others, "lastc,lastc,lastc")] {
            #expect(try await world.server.text(expected.0) == expected.1)
            #expect(world.device.text(expected.0) == expected.1)
        }
        // Nobody else has what was deleted: the deletion is about nothing.
        #expect(try await client.parked().allSatisfy { $0.changes[0].operation == .delete })
        #expect(world.device.text("SELECT min(id) FROM players") == "1")
        #expect(try await world.check() == [])
    }

    @Test("what was refused for want of a record that was not captured can be made again with it")
    func refusedBefore() async throws {
        let world = try await World()
        let client = world.device.client
        try world.tamper("INSERT INTO teams VALUES (50, 'Larks', NULL)")
        try await client.write { try $0.rows("UPDATE players SET team_id = 50 WHERE id = 7") }
        try await client.sync()
        let parked = try #require(try await client.parked().first)
        #expect(parked.reason == .constraint)
        #expect(try await world.check(.capture) == ["teams 50 uncaptured captured"])
        try await client.sync()
        try await client.retry(parked.identifier)
        try await client.sync()
        #expect(try await client.parked().isEmpty)
        let team = """
            SELECT t.name FROM players AS p JOIN teams AS t ON t.id = p.team_id WHERE p.id = 7
            """
        #expect(try await world.server.text(team) == "Larks")
        #expect(world.device.text(team) == "Larks")
    }

    @Test("what went wrong in the device's own books is put right")
    func books() async throws {
        let world = try await World()
        let before = world.everything
        try world.tamper(
            """
            DELETE FROM players WHERE id = 5;
            DELETE FROM martlet_records WHERE id = 5 AND type = 2;
            UPDATE martlet_records SET revision = 1 WHERE id IN (6, 7) AND type = 2;
            UPDATE players SET name = 'old' WHERE id = 7;
            INSERT INTO players VALUES (80, 1, 'ghost', NULL);
            INSERT INTO martlet_records VALUES (2, 80, 2)
            """)
        let expected = [
            "players 5 missing repaired", "players 6 revision repaired",
            "players 7 different repaired", "players 80 extra repaired",
        ]
        // Only what was edited knowingly of the truth can become an edit.
        #expect(try await world.check(.capture) == expected)
        #expect(world.everything == before)
        #expect(try await world.check() == [])
    }

    @Test("triggers that are gone are made again")
    func triggersAreRemade() async throws {
        let world = try await World()
        let before = world.everything
        let number =
            world.device.text(
                "SELECT number FROM martlet_types WHERE name = 'players'") ?? ""
        try DeviceFixture.shell(
            """
            DROP TRIGGER martlet_capture_update_\(number);
            UPDATE players SET name = 'unseen' WHERE id = 1
            """, path: world.device.path)
        let report = try await world.device.client.check()
        #expect(report.isCaptureRestored)
        #expect(report.findings.map(\.id) == [.integer(1)])
        #expect(world.everything == before)
        try DeviceFixture.shell(
            "UPDATE players SET name = 'seen' WHERE id = 1", path: world.device.path)
        try await world.device.client.sync()
        #expect(try await world.server.text("SELECT name FROM players WHERE id = 1") == "seen")
        try DeviceFixture.shell(
            "UPDATE martlet_control SET capture = 0", path: world.device.path)
        #expect(try await world.device.client.check().isCaptureRestored)
    }

    @Test("the check ends and is right while others write all the time")
    func disturbed() async throws {
        let world = try await World()
        try world.tamper(
            "UPDATE players SET name = 'x' WHERE id IN (2, 3, 20); DELETE FROM players WHERE id = 30"
        )
        await world.server.disturb(
            by: (0..<40).map { round in
                """
                {"types":["players"],"players":{"create":[-1],"update":[\(round % 2 == 0 ? 3 : 21)],
                "delete":[],"attributes":{"-1":{"name":"n\(round)"},
                "\(round % 2 == 0 ? 3 : 21)":{"revision":HEAD,"name":"o\(round)"}}}}
                """
            })
        let found = try await world.check()
        // 3 is changed by others meanwhile: it comes with their change, or is found, as it happens.
        #expect(
            Set(found).subtracting(["players 3 uncaptured repaired"]) == [
                "players 2 uncaptured repaired", "players 20 uncaptured repaired",
                "players 30 uncaptured repaired",
            ])
        await world.server.disturb(by: [])
        try await world.device.client.sync()
        #expect(try await world.check() == [])
    }

    @Test("rows that the server cannot send are no finding, and stay as they are here")
    func unsendableRowsInRepair() async throws {
        let world = try await World()
        let before = world.everything
        try await world.server.tamper(
            "UPDATE players SET name = CAST(x'ff' AS TEXT) WHERE id IN (3, 30);"
                + " UPDATE notes SET body = x'00' WHERE id = 'a'")
        for manner in [CheckRepair.revert, .capture] {
            #expect(try await world.check(manner) == [])
        }
        #expect(world.everything == before)
        // Others are found beside them.
        try world.tamper("UPDATE players SET name = 'x' WHERE id IN (4, 31)")
        #expect(
            try await world.check() == [
                "players 31 uncaptured repaired", "players 4 uncaptured repaired",
            ])
    }

    @Test("a server that compares nothing is named as the reason")
    func old() async throws {
        let world = try await World()
        await world.server.growOld()
        await #expect(throws: SyncError.self) { try await world.device.client.check() }
    }

    @Test("parts hashed while the one before is compared are repaired as they are by then")
    func aheadOfComparison() async throws {
        let world = try await World()
        try world.tamper("UPDATE players SET name = 'x' WHERE id IN (2, 21, 39)")
        let store = try DeviceStore(path: world.device.path, script: nil, randomBits: { 4 })
        var run = CheckRun(repairing: .revert, batchRecords: 7)
        var parts = 0
        while let body = try run.request(store, now: 1) {
            try run.prepare(store, now: 1)
            parts += 1
            // Changed after it was hashed: no difference then, and none to be repaired.
            if parts == 1 { try world.tamper("UPDATE players SET name = 'p21' WHERE id = 21") }
            let answer = try await world.server.exchange(body)
            try run.take(answer.body, store, now: 1)
        }
        #expect(parts > 6)
        #expect(run.report.recordCount == 44)
        #expect(run.report.findings.map(\.id) == [.integer(2), .integer(39)])
        #expect(try await world.check() == [])
    }

    @Test("what was not captured and cannot be sent is withheld, with what refers to it")
    func withheldUncaptured() async throws {
        let world = try await World()
        try world.tamper(
            """
            INSERT INTO players VALUES (-500, 1, x'00', 80), (-501, 1, 'fine', 81);
            UPDATE players SET name = x'0011' WHERE id = 7;
            INSERT INTO notes VALUES ('w', x'00'); INSERT INTO teams VALUES (-600, x'00', NULL);
            INSERT INTO players VALUES (-502, -600, 'under it', 82)
            """)
        #expect(
            try await world.check(.capture) == [
                "notes w uncaptured withheld", "players -500 uncaptured withheld",
                "players -501 uncaptured captured", "players -502 uncaptured withheld",
                "players 7 uncaptured withheld", "teams -600 uncaptured withheld",
            ])
        #expect(try await world.device.client.withheld().count == 5)
        #expect(try await world.device.client.status().outbox == 1)
        #expect(
            world.device.text(
                "SELECT group_concat(hex(name)) FROM players WHERE typeof(name) = 'blob' ORDER BY id"
            )
                == "00,0011")
        #expect(try await world.check(.capture) == [])
        try DeviceFixture.shell(
            """
            UPDATE players SET name = 'mended' WHERE typeof(name) = 'blob';
            UPDATE teams SET name = 'mended' WHERE typeof(name) = 'blob';
            UPDATE notes SET body = 'mended' WHERE typeof(body) = 'blob'
            """, path: world.device.path)
        try await world.device.client.sync()
        #expect(try await world.device.client.withheld().isEmpty)
        let names = try await world.server.text(
            """
            SELECT group_concat(name) FROM (
                SELECT name FROM players WHERE id = 7 OR id > 40 ORDER BY name)
            """)
        #expect(names == "fine,mended,mended,under it")
    }

    @Test("rows with keys that are not UTF-8 are named, and everything else is compared")
    func unreadableKeys() async throws {
        let world = try await World()
        try world.tamper(
            """
            INSERT INTO notes VALUES (CAST(x'ff61' AS TEXT), 'b'); UPDATE notes SET body = 'c'
            WHERE id = 'a'
            """)
        for manner in [CheckRepair.capture, .revert] {
            let report = try await world.device.client.check(repairing: manner)
            #expect(report.findings.map(\.id) == (manner == .capture ? [.text("a")] : []))
            #expect(report.unreadable.map(\.type) == ["notes"])
            #expect(report.unreadable.map(\.key) == ["ff61"])
            #expect(report.unreadable[0].message.contains("not UTF-8"))
        }
        #expect(world.device.text("SELECT body FROM notes WHERE id = 'a'") == "c")
    }
}
