import MartletModel
import MartletProtocol
import MartletRules
import MartletStore
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing

@testable import MartletDevice
@testable import MartletServerCore

@Suite("Records that leave their user's view, and what other programs did to the file")
struct AwayTableTests {
    private static let table =
        "CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT, owner TEXT, city TEXT);"
    private static let script = table + "CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT);"
    private static let rules = """
        CREATE POLICY own ON teams USING (owner = martlet_user()) WITH CHECK (true);
        CREATE POLICY office ON teams TO office USING (true);
        CREATE POLICY own ON notes USING (true);
        """
    private static let bob = Principal(name: "b", user: "bob")
    private static let office = Principal(name: "office", user: "olga", roles: ["office"])

    private let world: SmallWorld
    private let other: SmallDevice

    /// Makes two teams of Bob's.
    init() throws {
        world = try SmallWorld(DiskName.next("away"), script: Self.script)
        other = try world.device(script: Self.script)
        try other.write {
            for name in ["starling", "siskin"] {
                _ = try $0.insert("teams", ["name": .text(name), "owner": "bob"])
            }
        }
        try exchange(other, as: Self.office)
    }

    private func secure() throws {
        let node = try #require(world.server.node)
        node.policies = try RulesProgram(Self.rules, schema: node.schema)
    }

    private func exchange(_ device: SmallDevice, as principal: Principal) throws {
        world.server.sender = principal
        try device.sync(with: world.server)
        #expect(device.errors.isEmpty, "\(device.errors)")
    }

    private func change(_ sql: String) throws {
        try other.write { try $0.prepare(sql).run([]) }
        try exchange(other, as: Self.office)
    }

    /// Runs SQL as another program, and opens the device's file again as it then is.
    private func shell(_ sql: String, _ device: SmallDevice) throws {
        try device.connection().execute(sql)
        device.close()
        try device.open(script: nil)
    }

    private func has(_ word: String, _ device: SmallDevice) -> Bool {
        let bytes = ["device.sqlite", "device.sqlite-wal"].flatMap {
            device.disk.contents(of: $0) ?? []
        }
        return String(decoding: bytes, as: UTF8.self).contains(word)
    }

    /// The number of records that Bob's device has confirmed to have removed.
    private func confirmed() throws -> Int64 {
        try world.server.connection().integer("SELECT sum(records) FROM martlet_purges") ?? 0
    }

    /// How the device hears of a record before it leaves the view.
    enum Course: CaseIterable {
        /// It hears nothing.
        case plain
        /// The record changes while its table is away, so it is kept aside.
        case changed
        /// The device has everything, and fetches it again because of the view.
        case demoted
        /// Both.
        case changedAndDemoted
    }

    @Test("are not confirmed while their table has another name", arguments: Course.allCases)
    func renamed(course: Course) throws {
        let isDemoted = course == .demoted || course == .changedAndDemoted
        if !isDemoted { try secure() }
        let device = try world.device(script: Self.script)
        try exchange(device, as: Self.bob)
        try shell("ALTER TABLE teams RENAME TO old_teams", device)
        if course == .changed || course == .changedAndDemoted {
            try change("UPDATE teams SET city = 'Oslo' WHERE id = 1")
            try exchange(device, as: Self.bob)
            #expect(try device.store.keptAsideCount == 1)
        }
        if isDemoted { try secure() }
        try change("UPDATE teams SET owner = 'ann' WHERE id = 1")
        for _ in 0..<2 { try exchange(device, as: Self.bob) }
        #expect(has("starling", device))
        #expect(try device.store.standing.hasTraces)
        #expect(
            try device.store.unremovedReason == """
                another program has given the table “teams” the name “old_teams”, and records are to be removed \
                from it; give it its own name back (ALTER TABLE … RENAME TO …)
                """)
        #expect(try confirmed() == 0)

        try shell("ALTER TABLE old_teams RENAME TO teams", device)
        for _ in 0..<2 { try exchange(device, as: Self.bob) }
        #expect(try device.store.unremovedReason == nil)
        let names = try device.connection().prepare("SELECT name FROM teams")
        #expect(try names.step() && names.text(0) == "siskin")
        #expect(try !names.step())
        #expect(!has("starling", device) && has("siskin", device))
        #expect(try confirmed() == 1)
        #expect(try device.store.contradiction() == nil)
    }

    @Test("are not confirmed while their table is gone, until it is made again")
    func dropped() throws {
        try secure()
        let device = try world.device(script: Self.script)
        try exchange(device, as: Self.bob)
        try shell("DROP TABLE teams", device)
        try change("UPDATE teams SET owner = 'ann' WHERE id = 1")
        for _ in 0..<2 { try exchange(device, as: Self.bob) }
        let reason = try #require(try device.store.unremovedReason)
        #expect(reason.hasPrefix("another program has renamed or dropped the table “teams”"))
        #expect(try confirmed() == 0)
        try shell(Self.table, device)
        for _ in 0..<2 { try exchange(device, as: Self.bob) }
        #expect(try device.store.unremovedReason == nil)
        #expect(!has("starling", device))
        #expect(try confirmed() == 1)
    }

    @Test("are confirmed if a table without records of theirs is gone")
    func otherTable() throws {
        try secure()
        let device = try world.device(script: Self.script)
        try exchange(device, as: Self.bob)
        try shell("ALTER TABLE notes RENAME TO old_notes", device)
        try change("UPDATE teams SET owner = 'ann' WHERE id = 1")
        for _ in 0..<2 { try exchange(device, as: Self.bob) }
        #expect(try device.store.unremovedReason == nil)
        #expect(try confirmed() == 1)
    }

    @Test("wait for no table that a version of the app has dropped")
    func droppedByVersion() throws {
        let disk = FaultDisk(name: DiskName.next("version"))
        var versions = [
            Migration(1, "teams") { try $0.create(Self.table) },
            Migration(2, "notes") { try $0.create("CREATE TABLE notes(id TEXT PRIMARY KEY)") },
        ]
        func open() throws -> DeviceStore {
            try DeviceStore(
                path: "device.sqlite", migrations: try Migrations(versions), vfs: disk.vfsName,
                now: 1_000, randomBits: { 7 })
        }
        _ = try open()
        versions.append(Migration(3, "no notes") { try $0.dropTable("notes") })
        let store = try open()
        func apply(_ revision: Revision, _ changes: TypeChanges) throws {
            let report = try store.apply(
                [.entry(revision, changes)], reaching: revision, lineage: "l\(revision)",
                dataSet: "d", owner: "test", now: 2_000)
            #expect(report != nil)
        }
        let entry = RecordEntry(id: .text("n"), revision: 1, attributes: Attributes())
        try apply(1, TypeChanges(name: "notes", create: [.text("n")], entries: [entry]))
        #expect(try store.keptAsideCount == 1)
        var gone = TypeChanges(name: "notes", delete: [.text("n")])
        gone.hidden = [.text("n")]
        try apply(2, gone)
        #expect(try store.standing.hasTraces)
        for _ in 0..<100 where try store.standing.hasTraces {
            _ = try store.removeTraces(pages: 64)
        }
        #expect(try !store.standing.hasTraces)
        #expect(try store.unremovedReason == nil)
    }

    @Test("leave no free page in a file whose pages have another format")
    func otherFormat() throws {
        try secure()
        let disk = FaultDisk(name: DiskName.next("format"))
        do {
            let connection = try Connection(path: "device.sqlite", vfs: disk.vfsName)
            try connection.execute("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA user_version = 1")
        }
        // Each page keeps eight bytes for an extension, such as encryption.
        var bytes = try #require(disk.contents(of: "device.sqlite"))
        #expect(bytes.count == 4_096)
        bytes[20] = 8
        bytes.replaceSubrange(105..<107, with: [0x0f, 0xf8])
        disk.install(bytes, at: "device.sqlite")
        let device = SmallDevice(switchedOff: disk, number: 99)
        try device.open(script: Self.script)
        try exchange(device, as: Self.bob)
        try device.connection().execute(
            """
            PRAGMA secure_delete = OFF;
            CREATE TABLE copies(id INTEGER PRIMARY KEY, bytes TEXT);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 90)
                INSERT INTO copies SELECT i, 'starling' || hex(zeroblob(1500)) FROM n;
            DROP TABLE copies; PRAGMA wal_checkpoint(TRUNCATE);
            """)
        #expect(try device.connection().integer("PRAGMA freelist_count") ?? 0 > 80)
        try change("UPDATE teams SET owner = 'ann' WHERE id = 1")
        var steps = 0
        device.beforeNext = { if try device.store.standing.hasTraces { steps += 1 } }
        for _ in 0..<2 { try exchange(device, as: Self.bob) }
        #expect(steps > 5)
        #expect(try device.connection().integer("PRAGMA freelist_count") == 0)
        #expect(!has("starling", device) && has("siskin", device))
        #expect(try confirmed() == 1)
        #expect(try device.connection().text("PRAGMA integrity_check") == "ok")
    }
}
