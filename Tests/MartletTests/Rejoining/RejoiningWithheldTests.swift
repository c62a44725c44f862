import MartletModel
import MartletStore
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing
import TextComparison

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

    /// The device in the lost history: what it shows, and what the server has confirmed.
    private static let before = """
        at 9
        teams 1 @1: name x'3031', city "Oslo"
        teams 2 @7: name x'3032', city "Oslo"
        teams 3 @9: name x'3033', city "Oslo"
        teams 4 @4: name x'3034', city "Oslo"
        teams 5 @5: name x'3035', city "Oslo"
        teams 6 @6: name "Lost 6", city "Oslo"
        teams 7 @8: name x'3037', city "Oslo"
        players -5: team_id 6, name x'cc'
        players -4: team_id 7, name x'bb'
        players -3: team_id 4, name x'aa'
        base teams 1 @1: name "Team 1", city "Oslo"
        base teams 2 @7: name "Lost 2", city "Oslo"
        base teams 3 @9: name "Mine 3", city "Oslo"
        base teams 4 @4: name "Lost 4", city "Oslo"
        base teams 5 @5: name "Lost 5", city "Oslo"
        base teams 7 @8: name "Mine", city "Oslo"
        base players -5 @0
        base players -4 @0
        base players -3 @0
        receipt 1: accepted at 8
        receipt 2: accepted at 9
        teams -2 is 7
        withheld players -3
        withheld players -4
        withheld players -5
        withheld teams 1
        withheld teams 2
        withheld teams 3
        withheld teams 4
        withheld teams 5
        withheld teams 7
        """

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
        expectText(try mine.text(), before)
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
            try mine.store.local.rows(
                "SELECT id, CAST(name AS TEXT) FROM teams WHERE name <> 'New' ORDER BY id"
            ).map(\.values) == [[1, "01"], [2, "02"], [3, "03"], [10, "07"]])
        #expect(
            try mine.store.local.rows(
                "SELECT hex(name), team_id BETWEEN 1 AND 9, team_id = 10 FROM players ORDER BY 1"
            ).map(\.values) == [["AA", 0, 0], ["BB", 0, 1], ["CC", 0, 0]])
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
        let named = "SELECT name FROM teams WHERE name <> 'New' ORDER BY id"
        #expect(
            try other.store.local.rows(named).map(\.values)
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
        expectText(
            try mine.text(),
            """
            at 2
            teams -2: name x'03', city "Oslo"
            teams 1 @1: name "Owls", city "Oslo"
            teams 2 @2: name x'02', city "Oslo"
            base teams -2 @0
            base teams 2 @2: name "Jays", city "Oslo"
            withheld teams -2
            withheld teams 2
            """)
        // As an earlier release left it.
        try Self.shell(
            """
            UPDATE martlet_state SET value = -2 WHERE name = 'nextTemporaryID';
            UPDATE martlet_state SET value = 0 WHERE name = 'lowestNotedID'
            """, on: mine)
        try mine.sync(with: backup)
        #expect(mine.errors.isEmpty)
        expectText(
            try mine.text(),
            """
            at 1
            teams -2: name x'03', city "Oslo"
            teams 1 @1: name "Owls", city "Oslo"
            base teams -2 @0
            withheld teams -2
            withheld teams -3 (not shown)
            """)
        try mine.write { try $0.update("teams", .integer(1), ["name": "Larks"]) }
        try mine.sync(with: backup)
        expectText(
            try mine.text(),
            """
            at 2
            teams -2: name x'03', city "Oslo"
            teams 1 @2: name "Larks", city "Oslo"
            base teams -2 @0
            receipt 1: accepted at 2
            withheld teams -2
            withheld teams -3 (not shown)
            """)
    }
}
