import MartletRules
import MartletStore
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing

@testable import MartletDevice
@testable import MartletServerCore

@Suite("Removing bytes of hidden records")
struct TraceTests {
    private static let script = "CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT, owner TEXT);"
    private static let bob = Principal(name: "b", user: "bob")
    private static let office = Principal(name: "office", user: "olga", roles: ["office"])

    private let world: SmallWorld
    /// Bob's device, which may have a copy of “nightingale” in a page, and one of the office.
    private let device: SmallDevice
    private let other: SmallDevice

    /// Makes two teams that Bob sees, and takes the first one away from him. His device's file has many
    /// pages, and steps of the removal are short.
    init() throws {
        var pace = SmallPace()
        pace.sweptPages = 4
        world = try SmallWorld(DiskName.next("traces"), script: Self.script, pace: pace)
        let node = try #require(world.server.node)
        node.policies = try RulesProgram(
            """
            CREATE POLICY own ON teams USING (owner = martlet_user()) WITH CHECK (true);
            CREATE POLICY office ON teams TO office USING (true);
            """, schema: node.schema)
        (device, other) = (
            try world.device(script: Self.script), try world.device(script: Self.script)
        )
        try other.write {
            for name in ["starling", "siskin"] {
                _ = try $0.insert("teams", ["name": .text(name), "owner": "bob"])
            }
        }
        try exchange(other, as: Self.office)
        try exchange(device, as: Self.bob)
        try device.connection().execute(
            """
            CREATE TABLE scratch(id INTEGER PRIMARY KEY, bird TEXT);
            CREATE TABLE filler(id INTEGER PRIMARY KEY, bytes BLOB);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
                INSERT INTO filler SELECT i, zeroblob(3000) FROM n;
            CREATE VIRTUAL TABLE words USING fts5(name, content='teams', content_rowid='id');
            INSERT INTO words(words) VALUES ('rebuild');
            CREATE TRIGGER words_gone AFTER DELETE ON teams BEGIN
                INSERT INTO words(words, rowid, name) VALUES ('delete', OLD.id, OLD.name); END;
            """)
        try leave("nightingale")
        try other.write { try $0.prepare("UPDATE teams SET owner = 'ann' WHERE id = 1").run([]) }
        try exchange(other, as: Self.office)
    }

    private func exchange(_ device: SmallDevice, as principal: Principal) throws {
        world.server.sender = principal
        try device.sync(with: world.server)
        #expect(device.errors.isEmpty, "\(device.errors)")
    }

    /// Leaves a copy of a word between the cells of one of the file's first pages, as SQLite does when it
    /// splits a page.
    private func leave(_ bird: String) throws {
        try device.connection().execute(
            """
            PRAGMA secure_delete = OFF;
            INSERT INTO scratch VALUES (1, 'wren'), (2, '\(bird)'); DELETE FROM scratch;
            PRAGMA wal_checkpoint(TRUNCATE);
            """)
        #expect(try has(bird))
    }

    private func has(_ word: String) throws -> Bool {
        let bytes = ["device.sqlite", "device.sqlite-wal"].flatMap {
            device.disk.contents(of: $0) ?? []
        }
        return String(decoding: bytes, as: UTF8.self).contains(word)
    }

    /// The page from which Bob's device continues.
    private func page() throws -> Int64? { try device.store.standing.tracesFrom }

    /// The number of devices that have confirmed that they removed a record.
    private func confirmed() throws -> Int64? {
        try world.server.connection().integer(
            "SELECT count(*) FROM martlet_purges WHERE records > 0")
    }

    private func expectRemoved() throws {
        #expect(try page() == nil)
        #expect(try confirmed() == 1)
        #expect(try has("siskin"))
        for word in ["starling", "nightingale"] { #expect(try !has(word), "\(word)") }
    }

    @Test("is done in steps, between which the device saves and exchanges")
    func steps() throws {
        var steps = 0
        var sent: Int64?
        device.beforeNext = {
            guard try page() != nil else { return }
            steps += 1
            #expect(try confirmed() == 0)
            let city = try world.server.connection().text("SELECT name FROM teams WHERE id = 2")
            if city == "goldfinch" { sent = try sent ?? page() }
            guard steps == 4 else { return }
            try device.write {
                try $0.prepare("UPDATE teams SET name = 'goldfinch' WHERE id = 2").run([])
            }
            #expect(try device.node.handle(.wake(isUrgent: false), now: 1_000).isEmpty)
        }
        try exchange(device, as: Self.bob)
        #expect(steps > 10)
        #expect(sent != nil, "the save was sent before all bytes were removed")
        #expect(try page() == nil)
        #expect(try confirmed() == 1)
        for word in ["starling", "nightingale"] { #expect(try !has(word), "\(word)") }
    }

    @Test("begins again if another program wrote between two steps")
    func movedPages() throws {
        var hasLeft = false
        device.beforeNext = {
            guard try page() ?? 0 > 40, !hasLeft else { return }
            hasLeft = true
            try leave("bullfinch")
        }
        try exchange(device, as: Self.bob)
        #expect(hasLeft)
        try expectRemoved()
        #expect(try !has("bullfinch"))
    }

    @Test("includes pages that another program freed, also between two steps")
    func freePages() throws {
        func free(_ bird: String) throws {
            try device.connection().execute(
                """
                PRAGMA secure_delete = OFF; CREATE INDEX names ON teams(name, owner, id);
                CREATE TABLE copies AS SELECT name, '\(bird)' FROM teams; DROP TABLE copies; DROP INDEX names;
                PRAGMA wal_checkpoint(TRUNCATE);
                """)
            #expect(try has(bird))
        }
        try free("bullfinch")
        var hasLeft = false
        device.beforeNext = {
            guard try page() ?? 0 > 40, !hasLeft else { return }
            hasLeft = true
            try free("linnet")
        }
        try exchange(device, as: Self.bob)
        #expect(hasLeft)
        try expectRemoved()
        for word in ["bullfinch", "linnet"] { #expect(try !has(word), "\(word)") }
        #expect(try device.connection().integer("PRAGMA freelist_count") ?? 0 > 0)
        #expect(try device.connection().text("PRAGMA integrity_check") == "ok")
    }

    @Test("waits, and says so, if the list of the file's free pages is damaged")
    func damagedList() throws {
        try device.connection().execute(
            "CREATE TABLE copies AS SELECT * FROM filler; DROP TABLE copies;")
        device.close()
        var bytes = try #require(device.disk.contents(of: "device.sqlite"))
        let trunk = bytes[32..<36].reduce(0) { $0 << 8 | Int($1) }
        #expect(trunk > 1)
        // The last page that the first one of the list names; SQLite takes others first.
        let start = (trunk - 1) * 4_096
        let count = Int(bytes[start + 6]) << 8 | Int(bytes[start + 7])
        bytes[start + 8 + 4 * (count - 1) + 1] = 0x40
        device.disk.install(bytes, at: "device.sqlite")
        try device.open(script: nil)
        try exchange(device, as: Self.bob)
        let reason = try #require(try device.store.unremovedReason)
        #expect(
            reason.hasPrefix("the file is damaged: the list of its free pages is wrong."),
            "\(reason)")
        #expect(try confirmed() == 0)
    }

    private struct Stopped: Error {}

    @Test(
        "continues when the file is opened again, before and after indexes are merged",
        arguments: [0, 1, 40])
    func reopened(at stop: Int64) throws {
        if stop == 1 {
            // A reader keeps the log in use, so the removal ends where indexes are merged.
            let reader = try device.connection()
            try reader.execute("BEGIN; SELECT count(*) FROM teams;")
            try exchange(device, as: Self.bob)
        } else {
            device.beforeNext = { if let page = try page(), page >= stop { throw Stopped() } }
            #expect(throws: Stopped.self) { try exchange(device, as: Self.bob) }
            device.beforeNext = {}
        }
        device.close()
        // Nobody knows what was written to pages that are done.
        if stop == 40 { try leave("bullfinch") }
        try device.open(script: nil)
        let next = try #require(try page())
        #expect(stop < 40 ? next == stop : next >= stop)
        try exchange(device, as: Self.bob)
        try expectRemoved()
        #expect(try !has("bullfinch"))
    }

    @Test("removes the file of a snapshot's part")
    func fetchedPart() throws {
        let path = try device.store.snapshotPath
        device.disk.install([UInt8]("starling".utf8), at: path)
        try exchange(device, as: Self.bob)
        try expectRemoved()
        #expect(device.disk.contents(of: path) == nil)
    }
}
