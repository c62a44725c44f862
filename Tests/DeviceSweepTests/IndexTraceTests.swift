import MartletModel
import MartletRules
import MartletStore
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing

@testable import MartletDevice
@testable import MartletServerCore

@Suite("Removing bytes of hidden records from indexes")
struct IndexTraceTests {
    private static let script = """
        CREATE TABLE players(id INTEGER PRIMARY KEY, name TEXT, owner TEXT, x INTEGER, y INTEGER);
        """
    private static let rules = """
        CREATE POLICY own ON players USING (owner = martlet_user()) WITH CHECK (true);
        CREATE POLICY office ON players TO office USING (true);
        """
    private static let bob = Principal(name: "b", user: "bob")
    private static let office = Principal(name: "office", user: "olga", roles: ["office"])
    /// The number of players. The second half leaves, because an R*Tree leaves the last cells of a node.
    private static let players = 40

    private let world: SmallWorld
    private let device: SmallDevice
    private let other: SmallDevice

    /// Makes players that Bob sees.
    init() throws {
        world = try SmallWorld(DiskName.next("indexes"), script: Self.script)
        let node = try #require(world.server.node)
        node.policies = try RulesProgram(Self.rules, schema: node.schema)
        (device, other) = (
            try world.device(script: Self.script), try world.device(script: Self.script)
        )
        try other.write { context in
            for number in 1...Self.players {
                let values: RecordValues = [
                    "name": number == Self.players ? "starling" : "siskin", "owner": "bob",
                    "x": .integer(Self.x(number)), "y": 9,
                ]
                _ = try context.insert("players", values)
            }
        }
        try exchange(other, as: Self.office)
        try exchange(device, as: Self.bob)
    }

    private static func x(_ number: Int) -> Int64 { 7_654_321 + Int64(number) }

    private func exchange(_ device: SmallDevice, as principal: Principal) throws {
        world.server.sender = principal
        try device.sync(with: world.server)
        #expect(device.errors.isEmpty, "\(device.errors)")
    }

    private func hide() throws {
        try other.write {
            try $0.prepare("UPDATE players SET owner = 'ann' WHERE id > \(Self.players / 2)").run(
                [])
        }
        try exchange(other, as: Self.office)
    }

    private func bytes() -> String {
        let bytes = ["device.sqlite", "device.sqlite-wal"].flatMap {
            device.disk.contents(of: $0) ?? []
        }
        return String(decoding: bytes, as: Unicode.ASCII.self)
    }

    /// The number of records that Bob's device has confirmed to have removed.
    private func confirmed() throws -> Int64 {
        try world.server.connection().integer("SELECT sum(records) FROM martlet_purges") ?? 0
    }

    // MARK: - Samples

    @Test(
        "deletes the samples that another program's ANALYZE made",
        arguments: ["sqlite_stat2", "sqlite_stat3", "sqlite_stat4"])
    func samples(table: String) throws {
        // The tests' SQLite makes no samples itself.
        try device.connection().execute(
            """
            PRAGMA writable_schema = ON;
            CREATE TABLE \(table)(tbl, idx, neq, nlt, ndlt, sample);
            PRAGMA writable_schema = OFF;
            INSERT INTO \(table)(tbl, idx, sample)
                SELECT 'players', 'names', CAST (name AS BLOB) FROM players;
            """)
        try hide()
        #expect(bytes().contains("starling"))
        try exchange(device, as: Self.bob)
        #expect(try device.connection().integer("SELECT count(*) FROM \(table)") == 0)
        #expect(!bytes().contains("starling") && bytes().contains("siskin"))
        #expect(try confirmed() == Int64(Self.players / 2))
        try device.connection().execute("CREATE INDEX names ON players(name); ANALYZE")
        #expect(try device.connection().text("PRAGMA integrity_check") == "ok")
    }

    // MARK: - R*Trees

    /// Makes an R*Tree of the players, which triggers keep.
    private func makeTree(_ module: String, _ columns: String) throws {
        let hasY = columns.contains("y0")
        func cells(_ row: String) -> String {
            "\(row).id, \(row).x, \(row).x" + (hasY ? ", \(row).y, \(row).y" : "")
        }
        let names = hasY ? "id, x0, x1, y0, y1" : "id, x0, x1"
        try device.connection().execute(
            """
            CREATE VIRTUAL TABLE geo USING \(module)(\(columns));
            INSERT INTO geo(\(names)) SELECT \(cells("players")) FROM players;
            CREATE TRIGGER geo_new AFTER INSERT ON players BEGIN
                INSERT INTO geo(\(names)) VALUES (\(cells("NEW"))); END;
            CREATE TRIGGER geo_gone AFTER DELETE ON players BEGIN
                DELETE FROM geo WHERE id = OLD.id; END;
            CREATE TRIGGER geo_changed AFTER UPDATE ON players BEGIN
                DELETE FROM geo WHERE id = OLD.id;
                INSERT INTO geo(\(names)) VALUES (\(cells("NEW"))); END;
            """)
    }

    /// Returns the players whose cells are in the file: the id, and the first coordinate.
    private func cells(isInteger: Bool) throws -> Set<Int> {
        let text = bytes()
        return Set(
            (1...Self.players).filter { number in
                let x = Self.x(number)
                let bits = isInteger ? UInt32(x) : Float(x).bitPattern
                let cell =
                    withUnsafeBytes(of: UInt64(number).bigEndian, Array.init)
                    + withUnsafeBytes(of: bits.bigEndian, Array.init)
                return text.contains(String(decoding: cell, as: Unicode.ASCII.self))
            })
    }

    @Test(
        "overwrites cells that an R*Tree has removed",
        arguments: [
            ("rtree", "id, x0, x1"), ("RTree", "id, x0, x1, y0, y1, +note, +more"),
            ("rtree_i32", "id, x0, x1, y0, y1"),
        ])
    func tree(module: String, columns: String) throws {
        try makeTree(module, columns)
        try hide()
        let isInteger = module == "rtree_i32"
        #expect(try cells(isInteger: isInteger).count == Self.players)
        try exchange(device, as: Self.bob)
        let left = Set(1...Self.players / 2)
        #expect(try cells(isInteger: isInteger) == left)
        #expect(try confirmed() == Int64(Self.players / 2))
        // The tree goes on.
        try device.write { try $0.prepare("UPDATE players SET x = x + 1 WHERE id > 10").run([]) }
        let connection = try device.connection()
        #expect(try connection.text("SELECT rtreecheck('geo')") == "ok")
        #expect(
            try connection.integer("SELECT count(*) FROM geo WHERE x0 >= \(Self.x(11))") == 10)
    }

    @Test("overwrites many nodes in steps")
    func steps() throws {
        try makeTree("rtree", "id, x0, x1")
        try device.connection().execute(
            """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)
                INSERT INTO geo SELECT 1000 + i, i, i FROM n;
            DELETE FROM geo WHERE id > 1000 AND id % 3 = 1;
            """)
        try hide()
        var steps = 0
        device.beforeNext = {
            if try device.store.standing.tracesFrom == 0 { steps += 1 }
        }
        try exchange(device, as: Self.bob)
        #expect(steps > 3)
        let nodes = try device.connection().prepare("SELECT data FROM geo_node")
        while try nodes.step() {
            let node = nodes.blob(0)
            let start = 4 + 16 * (Int(node[2]) << 8 | Int(node[3]))
            #expect(node[start...].allSatisfy { $0 == 0 })
        }
        #expect(try confirmed() == Int64(Self.players / 2))
    }

    @Test("does not confirm while a node of an R*Tree is damaged, and says so")
    func damagedTree() throws {
        try makeTree("rtree", "id, x0, x1")
        try hide()
        let connection = try device.connection()
        try connection.execute(
            """
            CREATE TABLE kept AS SELECT * FROM geo_node;
            INSERT INTO geo_node VALUES (77, x'0000ffff');
            """)
        try exchange(device, as: Self.bob)
        let reason = try #require(try device.store.unremovedReason)
        #expect(
            reason.hasPrefix("bytes of the R*Tree “geo” cannot be overwritten: "), "\(reason)")
        #expect(try confirmed() == 0)
        try connection.execute("DELETE FROM geo_node WHERE nodeno = 77; DROP TABLE kept")
        for _ in 0..<2 { try exchange(device, as: Self.bob) }
        #expect(try device.store.unremovedReason == nil)
        #expect(try confirmed() == Int64(Self.players / 2))
    }

    // MARK: - Other modules

    @Test("waits for a table of an unknown module if a trigger writes to it, and says so")
    func unknownModule() throws {
        try device.connection().execute(
            """
            CREATE TRIGGER sounds_new AFTER INSERT ON players BEGIN
                INSERT INTO "Sounds"(word) VALUES (NEW.name); END;
            PRAGMA writable_schema = ON;
            INSERT INTO sqlite_schema(type, name, tbl_name, rootpage, sql) VALUES
                ('table', 'sounds', 'sounds', 0, 'CREATE VIRTUAL TABLE sounds USING spellfix1');
            """)
        device.close()
        try device.open(script: nil)
        try hide()
        try exchange(device, as: Self.bob)
        let reason = try #require(try device.store.unremovedReason)
        #expect(
            reason.hasPrefix("triggers write to the table “sounds” of the module “spellfix1”"),
            "\(reason)")
        #expect(try confirmed() == 0)
        try device.connection().execute(
            """
            DROP TRIGGER sounds_new; PRAGMA writable_schema = ON;
            DELETE FROM sqlite_schema WHERE name = 'sounds';
            """)
        device.close()
        try device.open(script: nil)
        for _ in 0..<2 { try exchange(device, as: Self.bob) }
        #expect(try device.store.unremovedReason == nil)
        #expect(try confirmed() == Int64(Self.players / 2))
    }

    @Test("waits for no table of an unknown module to which no trigger writes")
    func unusedModule() throws {
        try device.connection().execute(
            """
            CREATE VIRTUAL TABLE pages USING dbstat(main);
            CREATE TABLE sizes(bytes INTEGER);
            CREATE TRIGGER sizes_new AFTER DELETE ON players BEGIN
                INSERT INTO sizes SELECT sum(pgsize) FROM pages; END;
            """)
        try hide()
        try exchange(device, as: Self.bob)
        #expect(try device.store.unremovedReason == nil)
        #expect(try confirmed() == Int64(Self.players / 2))
    }
}
