import MartletModel
import MartletStore
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// What other programs wrote that cannot be sent, when the server was restored from a backup.
@Suite("Withheld records on a restored server")
struct RejoiningWithheldTests {
    private static func shell(_ sql: String, on device: SmallDevice) throws {
        let connection = try Connection(
            path: "device.sqlite", mode: .readWrite, vfs: device.disk.vfsName)
        try connection.execute(sql)
    }

    private static func rows(_ sql: String, on device: SmallDevice) throws -> [[SQLValue]] {
        try device.store.local.rows(sql).map(\.values)
    }

    /// Teams 1 to 3 in both histories. In the lost one others changed 2 and made 4 to 6, and the device
    /// changed 3 and made 7; in the new one others changed 3 and made 4 to 9. Of the teams that only the
    /// lost history has, 4 is withheld and a player names it, 5 is withheld, and a player names 6.
    private static func world() throws -> (
        mine: SmallDevice, other: SmallDevice, server: SmallServer
    ) {
        let world = try SmallWorld("rejoin-withheld")
        let (mine, lost) = (try world.device(), try world.device())
        for number in 1...3 {
            try lost.write { try $0.insert("teams", ["name": .text("Team \(number)")]) }
        }
        try lost.sync(with: world.server)
        try mine.sync(with: world.server)
        let backup = try world.restoredServer()
        for number in 4...6 {
            try lost.write { try $0.insert("teams", ["name": .text("Lost \(number)")]) }
        }
        try lost.write { try $0.update("teams", .integer(2), ["name": "Lost 2"]) }
        try lost.sync(with: world.server)
        try mine.sync(with: world.server)
        try mine.write { try $0.insert("teams", ["name": "Mine"]) }
        try mine.write { try $0.update("teams", .integer(3), ["name": "Mine 3"]) }
        try mine.sync(with: world.server)
        try shell(
            """
            UPDATE teams SET name = CAST('0' || id AS BLOB) WHERE id <> 6;
            INSERT INTO players(id, team_id, name) SELECT id, 4, x'aa' FROM martlet_new_id;
            INSERT INTO players(id, team_id, name) SELECT id, 7, x'bb' FROM martlet_new_id;
            INSERT INTO players(id, team_id, name) SELECT id, 6, x'cc' FROM martlet_new_id
            """, on: mine)
        try mine.sync(with: world.server)
        #expect(try mine.store.withheld().count == 9)
        let other = try world.device()
        try other.sync(with: backup)
        try other.write { try $0.update("teams", .integer(3), ["name": "Theirs"]) }
        for _ in 4...9 { try other.write { try $0.insert("teams", ["name": "New"]) } }
        try other.sync(with: backup)
        return (mine, other, backup)
    }

    @Test("they stay with the records they were made on, and are judged by what these were")
    func judged() throws {
        let (mine, other, server) = try Self.world()
        try mine.sync(with: server)
        #expect(mine.errors.isEmpty)
        #expect(
            try Self.rows(
                "SELECT id, CAST(name AS TEXT) FROM teams WHERE name <> 'New' ORDER BY id",
                on: mine) == [[1, "01"], [2, "02"], [3, "03"], [10, "07"]])
        #expect(
            try Self.rows(
                "SELECT hex(name), team_id BETWEEN 1 AND 9, team_id = 10 FROM players ORDER BY 1",
                on: mine) == [["AA", 0, 0], ["BB", 0, 1], ["CC", 0, 0]])
        // The records that only the lost history had are none of those made since.
        let stray = try mine.store.withheld().filter { !$0.isShown }
        #expect(stray.map(\.type) == ["teams", "teams"])
        #expect(stray.allSatisfy { $0.id.isTemporary })
        for record in stray { try mine.write { _ in try mine.store.drop(record) } }

        try Self.shell("UPDATE teams SET name = 'Mended ' || id WHERE id IN (1, 2, 10)", on: mine)
        try mine.sync(with: server)
        #expect(try mine.store.parked().map { $0.changes[0].mine?["name"] } == ["Mine 3"])
        try Self.shell("UPDATE teams SET name = 'Mended 3' WHERE id = 3", on: mine)
        try mine.sync(with: server)
        #expect(try mine.store.parked().map(\.reason) == [.stale, .stale])
        try other.sync(with: server)
        #expect(
            try Self.rows(
                "SELECT name FROM teams WHERE name <> 'New' ORDER BY id", on: other)
                == [["Mended 1"], ["Mended 2"], ["Theirs"], ["Mended 10"]])
    }

    @Test("a record that the restored server lacks and a new one that waits are two records")
    func newBesideLost() throws {
        let world = try SmallWorld("rejoin-withheld-new")
        let (mine, other) = (try world.device(), try world.device())
        try other.write { try $0.insert("teams", ["name": "Owls"]) }
        try other.sync(with: world.server)
        let backup = try world.restoredServer()
        try other.write { try $0.insert("teams", ["name": "Jays"]) }
        try other.sync(with: world.server)
        try mine.sync(with: world.server)
        try Self.shell(
            """
            UPDATE teams SET name = x'02' WHERE id = 2;
            INSERT INTO teams(id, name) SELECT id, x'03' FROM martlet_new_id
            """, on: mine)
        try mine.sync(with: world.server)
        #expect(try mine.store.withheld().count == 2)
        // As an earlier release left it.
        try Self.shell(
            """
            UPDATE martlet_state SET value = -2 WHERE name = 'nextTemporaryID';
            UPDATE martlet_state SET value = 0 WHERE name = 'lowestNotedID'
            """, on: mine)
        try mine.sync(with: backup)
        #expect(mine.errors.isEmpty)
        #expect(try mine.store.withheld().map(\.isShown).sorted { $0 && !$1 } == [true, false])
        #expect(try Self.rows("SELECT hex(name) FROM teams WHERE id < 0", on: mine) == [["03"]])
        try mine.write { try $0.update("teams", .integer(1), ["name": "Larks"]) }
        try mine.sync(with: backup)
        #expect(try Self.rows("SELECT count(*) FROM martlet_outbox", on: mine) == [[0]])
    }
}
