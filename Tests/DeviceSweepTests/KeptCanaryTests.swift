import MartletModel
import MartletRules
import MartletStore
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing

@testable import MartletDevice
@testable import MartletServerCore

/// Values that a device keeps elsewhere than in the rows, of records that leave their user's view.
@Suite("Kept values of records that leave their user's view")
struct KeptCanaryTests {
    private static let script =
        "CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT, owner TEXT, city TEXT);"
    private static let canary = "nightingale"
    private static let bob = Principal(name: "b", user: "bob")
    private static let office = Principal(name: "office", user: "olga", roles: ["office"])

    private let world: SmallWorld

    init() throws {
        world = try SmallWorld(DiskName.next("kept"), script: Self.script)
        let node = try #require(world.server.node)
        node.policies = try RulesProgram(
            """
            CREATE POLICY own ON teams USING (owner = martlet_user()) WITH CHECK (true);
            CREATE POLICY office ON teams TO office USING (true);
            """, schema: node.schema)
    }

    private func exchange(_ device: SmallDevice, as principal: Principal) throws {
        world.server.sender = principal
        try device.sync(with: world.server)
    }

    private func has(_ word: String, _ device: SmallDevice) -> Bool {
        let bytes = ["device.sqlite", "device.sqlite-wal"].flatMap {
            device.disk.contents(of: $0) ?? []
        }
        return String(decoding: bytes, as: UTF8.self).contains(word)
    }

    @Test(
        "go with a record in quarantine, and with values for columns that the app does not have",
        arguments: [
            ("martlet_quarantine", "name TEXT CHECK (name <> 'starling'), owner TEXT, city TEXT"),
            ("martlet_aside", "name TEXT, owner TEXT"),
        ])
    func elsewhere(table: String, columns: String) throws {
        let office = try world.device(script: Self.script)
        let device = try world.device(
            script: "CREATE TABLE teams(id INTEGER PRIMARY KEY, \(columns));")
        try office.write {
            _ = try $0.insert(
                "teams", ["name": "starling", "owner": "bob", "city": .text(Self.canary)])
        }
        try exchange(office, as: Self.office)
        try exchange(device, as: Self.bob)
        let count = "SELECT count(*) FROM \(table)"
        #expect(try device.connection().integer(count) == 1)
        #expect(has(Self.canary, device))
        try office.write { try $0.prepare("UPDATE teams SET owner = 'ann'").run([]) }
        try exchange(office, as: Self.office)
        try exchange(device, as: Self.bob)
        #expect(try device.connection().integer(count) == 0)
        #expect(try !device.store.standing.hasTraces)
        #expect(!has(Self.canary, device))
    }

    @Test(
        "go with the earlier values of edits that wait, are refused or accepted, and of withheld rows",
        arguments: [
            ("martlet_changes", "base"), ("martlet_parked_changes", "base"),
            ("martlet_confirmed_changes", "base"), ("martlet_withheld", "image"),
        ])
    func earlierValues(table: String, column: String) throws {
        let device = try world.device(script: Self.script)
        let store = try device.store.applying
        let type = try #require(try store.number(ofType: "teams"))
        let others =
            column == "image"
            ? ("message, at, revision", "'', 0, 1")
            : ("sequence, operation, base_revision", "99, 2, 1")
        try store.connection.execute(
            """
            INSERT INTO \(table)(type, id, \(column), \(others.0))
            VALUES (\(type), 77, CAST ('\(Self.canary)' AS BLOB), \(others.1))
            """)
        let kept =
            "SELECT count(*) FROM \(table) WHERE instr(\(column), CAST ('\(Self.canary)' AS BLOB))"
        #expect(try store.connection.integer(kept) == 1)
        try Purge(store: store).run([RecordKey(type: type, id: .integer(77))])
        #expect(try store.connection.integer(kept) == 0)
        #expect(try store.connection.integer("SELECT count(*) FROM \(table)") == 1)
    }
}
