import MartletModel
import MartletRules
import MartletStore
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing

@testable import MartletDevice
@testable import MartletServerCore

@Suite("Records that leave their user's view")
struct PurgeTests {
    private static let script = """
        CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT, owner TEXT, city TEXT);
        """
    private static let own = """
        CREATE POLICY own ON teams USING (owner = martlet_user()) WITH CHECK (true);
        CREATE POLICY office ON teams TO office USING (true);
        """
    private static let bob = Principal(name: "b", user: "bob")
    private static let office = Principal(name: "office", user: "olga", roles: ["office"])
    /// Words that Bob did not write. They stand in the records before his edits.
    private static let secrets = ["starling", "redpoll", "whinchat"]

    private let world: SmallWorld
    /// Bob's device, and one of the office.
    private let device: SmallDevice
    private let other: SmallDevice

    init() throws {
        world = try SmallWorld(DiskName.next("purge"), script: Self.script)
        (device, other) = (
            try world.device(script: Self.script), try world.device(script: Self.script)
        )
    }

    private func exchange(_ device: SmallDevice, as principal: Principal) throws {
        world.server.sender = principal
        try device.sync(with: world.server)
        #expect(device.errors.isEmpty, "\(device.errors)")
    }

    private func secure(_ rules: String) throws {
        let node = try #require(world.server.node)
        node.policies = try RulesProgram(rules, schema: node.schema)
    }

    private func change(_ device: SmallDevice, _ sql: String) throws {
        try device.write { try $0.prepare(sql).run([]) }
    }

    /// The office gives teams 1 to 3 to Ann.
    private func giveAway() throws {
        try change(other, "UPDATE teams SET owner = 'ann' WHERE id < 4")
        try exchange(other, as: Self.office)
    }

    /// Makes four teams. Bob has an edit of each: confirmed (1), refused (2), to be sent (3 and 4).
    /// Another program on his device has made a full-text index.
    private func prepare() throws {
        try other.write { context in
            for (index, name) in (Self.secrets + ["siskin"]).enumerated() {
                _ = try context.insert(
                    "teams",
                    ["name": .text(name), "owner": "bob", "city": .text("\(name)\(index)")])
            }
        }
        try exchange(other, as: Self.office)
        try exchange(device, as: Self.bob)
        let connection = try device.connection()
        try connection.execute(
            """
            CREATE VIRTUAL TABLE words USING fts5(name, city, content='teams', content_rowid='id');
            CREATE VIRTUAL TABLE vocabulary USING fts5vocab(words, row);
            CREATE VIRTUAL TABLE older USING fts4(content='teams', name);
            INSERT INTO older(older) VALUES ('rebuild');
            CREATE TRIGGER older_gone BEFORE DELETE ON teams BEGIN
                DELETE FROM older WHERE docid = OLD.id; END;
            INSERT INTO words(words) VALUES ('rebuild');
            CREATE TRIGGER words_gone AFTER DELETE ON teams BEGIN
                INSERT INTO words(words, rowid, name, city)
                VALUES ('delete', OLD.id, OLD.name, OLD.city); END;
            CREATE TRIGGER words_new AFTER INSERT ON teams BEGIN
                INSERT INTO words(rowid, name, city) VALUES (NEW.id, NEW.name, NEW.city); END;
            CREATE TRIGGER words_changed AFTER UPDATE ON teams BEGIN
                INSERT INTO words(words, rowid, name, city)
                VALUES ('delete', OLD.id, OLD.name, OLD.city);
                INSERT INTO words(rowid, name, city) VALUES (NEW.id, NEW.name, NEW.city); END;
            """)
        try change(device, "UPDATE teams SET city = 'mine1' WHERE id = 1")
        try exchange(device, as: Self.bob)
        try change(other, "UPDATE teams SET owner = 'bob', city = 'theirs' WHERE id = 2")
        try exchange(other, as: Self.office)
        try change(device, "UPDATE teams SET city = 'mine2' WHERE id = 2")
        try exchange(device, as: Self.bob)
        let refused = try device.store.parked()
        #expect(refused.map(\.reason) == [.stale])
        #expect(refused.first?.changes.first?.base?["name"] == "redpoll")
        try change(device, "UPDATE teams SET city = 'mine3' WHERE id = 3")
        try change(device, "UPDATE teams SET city = 'mine4' WHERE id = 4")
    }

    /// Expects that Bob's device has team 4 and what he wrote, and nothing else.
    private func expectPurged() throws {
        let rows = try device.connection().prepare("SELECT name, city FROM teams")
        #expect(try rows.step() && rows.text(0) == "siskin" && rows.text(1) == "mine4")
        #expect(try !rows.step())
        let store = try device.store
        #expect(try store.outboxCount == 0)
        let sets = try store.parked()
        #expect(sets.map(\.reason) == [.stale, .permission])
        for (set, city) in zip(sets, ["mine2", "mine3"]) {
            #expect(set.changes.count == 1)
            let change = try #require(set.changes.first)
            #expect(change.base == nil && change.theirs == nil)
            #expect(
                change.mine.map { Array($0.names) } == ["city"]
                    && change.mine?["city"] == .text(city))
        }
        #expect(try !store.standing.hasTraces)
        let bytes = ["device.sqlite", "device.sqlite-wal"].flatMap {
            device.disk.contents(of: $0) ?? []
        }
        let text = String(decoding: bytes, as: UTF8.self)
        #expect(text.contains("siskin") && text.contains("mine1") && text.contains("mine3"))
        for secret in Self.secrets {
            #expect(!text.contains(secret), "\(secret) is still in the file")
        }
    }

    @Test("leave only the words that the user wrote")
    func leaving() throws {
        try secure(Self.own)
        try prepare()
        try giveAway()
        try exchange(device, as: Self.bob)
        try expectPurged()
    }

    @Test("leave only the words that the user wrote, if the device had everything")
    func demoted() throws {
        try prepare()
        try giveAway()
        try secure(Self.own)
        try exchange(device, as: Self.bob)
        try expectPurged()
    }

    @Test("go in slices, and with another role")
    func slices() throws {
        device.pace.sliceRecords = 1
        device.close()
        try device.open(script: Self.script)
        try secure(Self.own)
        try prepare()
        try secure(
            """
            CREATE POLICY own ON teams USING (owner = martlet_user() AND name > 'sa'
                AND name < 'sk') WITH CHECK (true);
            CREATE POLICY office ON teams TO office USING (true);
            """)
        try exchange(device, as: Self.bob)
        try expectPurged()
    }

    @Test("leave only the words that the user wrote, while the device fetches everything again")
    func refetched() throws {
        try secure(Self.own)
        try prepare()
        try giveAway()
        try device.beginRefetching(script: Self.script)
        try exchange(device, as: Self.bob)
        try expectPurged()
    }

    @Test(
        "are not those of parts of a snapshot that are still to come", arguments: [false, true])
    func partsToCome(isOlder: Bool) throws {
        let script = Self.script + "CREATE TABLE players(id INTEGER PRIMARY KEY, name TEXT);"
        let world = try SmallWorld(DiskName.next("purge"), script: script)
        let node = try #require(world.server.node)
        node.policies = try RulesProgram(
            Self.own + "CREATE POLICY office ON players TO office USING (true);",
            schema: node.schema)
        world.server.sender = Self.office
        let device = try world.device(script: script)
        try device.write { context in
            _ = try context.insert("teams", ["name": "Owls"])
            _ = try context.insert("players", ["name": "Pia"])
        }
        try device.sync(with: world.server)
        #expect(try device.store.standing.view == 0)
        device.snapshot = try world.server.snapshot(
            SeedingPlan(classes: [.init(name: "first", types: ["teams": .all])]))
        device.heldBack = ["rest"]
        if isOlder {
            try change(device, "UPDATE teams SET city = 'Oslo'")
            try device.sync(with: world.server)
        }
        try change(device, "UPDATE players SET name = 'Mia'")
        try device.beginRefetching(script: script)
        try device.sync(with: world.server)
        #expect(try device.store.pendingSnapshot != nil)
        #expect(try device.store.parked().isEmpty)
        device.heldBack = []
        try device.sync(with: world.server)
        #expect(device.errors.isEmpty)
        #expect(try device.store.parked().isEmpty && device.store.outboxCount == 0)
        let names = try world.server.connection().prepare("SELECT name FROM players")
        #expect(try names.step() && names.text(0) == "Mia")
    }

    private struct Stopped: Error {}

    @Test("go from a device that stopped within an answer, before its user lost his rights")
    func stoppedWithinAnswer() throws {
        device.pace.sliceRecords = 1
        device.isAlone = true
        device.close()
        try device.open(script: Self.script)
        try secure(Self.own)
        for (name, owner) in zip(Self.secrets + ["siskin"], ["ann", "ann", "ann", "bob"]) {
            try other.write {
                _ = try $0.insert("teams", ["name": .text(name), "owner": .text(owner)])
            }
        }
        try exchange(other, as: Self.office)
        world.server.sender = Principal(name: "b", user: "bob", roles: ["office"])
        #expect(throws: Stopped.self) {
            try device.sync(with: world.server) {
                if try $0.revision == 2 { throw Stopped() }
            }
        }
        try device.store.endLeases()
        device.close()
        try device.open(script: Self.script)
        #expect(try device.store.revision == 2 && device.store.standing.lineage == nil)

        for _ in 0..<2 { try exchange(device, as: Self.bob) }
        let rows = try device.connection().prepare("SELECT name FROM teams")
        #expect(try rows.step() && rows.text(0) == "siskin")
        #expect(try !rows.step())
        #expect(try !device.store.standing.hasTraces)
        let bytes = ["device.sqlite", "device.sqlite-wal"].flatMap {
            device.disk.contents(of: $0) ?? []
        }
        let text = String(decoding: bytes, as: UTF8.self)
        #expect(text.contains("siskin"))
        for secret in Self.secrets { #expect(!text.contains(secret), "\(secret)") }
    }

    /// Returns the devices with what they have confirmed, as text.
    private func purges() throws -> [String] {
        let connection = try world.server.connection()
        let list = try DevicePurges(prefix: "martlet_").list { (query) throws(SQLiteError) in
            try connection.statement(query).rows { (row) throws(SQLiteError) in
                (0..<row.columnCount).map { row.isNull($0) ? nil : row.text($0) }
            }
        }
        return list.map { device in
            let records = device.confirmed.map { "\($0.records)" } ?? "none"
            let user = device.principal.dropFirst("user:".count)
            return "\(user): \(device.state.rawValue), \(records), \(device.hidden)"
        }
    }

    @Test("are counted by the server, device by device, once nothing is left of them")
    func confirmations() throws {
        try secure(Self.own)
        try prepare()
        let late = try world.device(script: Self.script)
        try exchange(late, as: Self.bob)
        #expect(
            try purges() == [
                "bob: confirmed, 0, 0", "bob: confirmed, 0, 0", "olga: sees all, 0, 0",
            ])
        try giveAway()
        let reader = try late.connection()
        try reader.execute("BEGIN; SELECT count(*) FROM teams;")
        try exchange(device, as: Self.bob)
        #expect(try late.store.unremovedReason == nil)
        try exchange(late, as: Self.bob)
        #expect(
            try purges().sorted() == [
                "bob: confirmed, 3, 0", "bob: waits, 0, 3", "olga: sees all, 0, 0",
            ])
        let reason = try #require(try late.store.unremovedReason)
        #expect(reason.contains("reading the file") && reason.contains("end its read transaction"))
        #expect(try device.store.unremovedReason == nil)
        // It is told once: another attempt writes nothing.
        func size() -> Int { late.disk.contents(of: "device.sqlite-wal")?.count ?? 0 }
        let written = size()
        #expect(try late.store.removeTraces(pages: 8))
        #expect(size() == written && written > 0)
        try reader.execute("COMMIT")
        try exchange(late, as: Self.bob)
        #expect(try late.store.unremovedReason == nil)
        #expect(try purges().prefix(2) == ["bob: confirmed, 3, 0", "bob: confirmed, 3, 0"])
        // Both had the same, and removed it.
        let sums = try device.store.standing.removed
        #expect(try late.store.standing.removed == sums)
    }

    @Test("are not waited for if somebody deleted them")
    func deletedIsNotHidden() throws {
        try secure(Self.own)
        try prepare()
        try change(other, "DELETE FROM teams WHERE id = 3")
        try exchange(other, as: Self.office)
        try exchange(device, as: Self.bob)
        #expect(try purges() == ["bob: confirmed, 1, 0", "olga: sees all, 0, 0"])
    }

    @Test("are confirmed by a device that had all rights for a time, once it comes again")
    func rightsForATime() throws {
        try secure(Self.own)
        try prepare()
        let late = try world.device(script: Self.script)
        try exchange(late, as: Self.bob)
        let chief = Principal(name: "b", user: "bob", roles: ["office"])
        try change(other, "UPDATE teams SET owner = 'ann' WHERE id = 1")
        try exchange(other, as: Self.office)
        try exchange(late, as: chief)
        try change(other, "UPDATE teams SET city = 'Rome' WHERE id = 1")
        try exchange(other, as: Self.office)
        try exchange(device, as: Self.bob)
        #expect(
            try purges().sorted() == [
                "bob: confirmed, 1, 0", "bob: sees all, 0, 0", "olga: sees all, 0, 0",
            ])
        try exchange(late, as: Self.bob)
        #expect(try purges().prefix(2).allSatisfy { $0.hasPrefix("bob: confirmed") })
    }

    @Test("are not confirmed while a full-text index is damaged, and the device says so")
    func damagedIndex() throws {
        try secure(Self.own)
        try prepare()
        try giveAway()
        let connection = try device.connection()
        try connection.execute("UPDATE older_segdir SET root = x'00'")
        try exchange(device, as: Self.bob)
        #expect(try device.store.standing.hasTraces)
        let reason = try #require(try device.store.unremovedReason)
        #expect(reason.hasPrefix("the full-text index “older” cannot be merged: "), "\(reason)")
        #expect(reason.hasSuffix("; rebuild the index, or drop it"), "\(reason)")
        #expect(try purges().first == "bob: waits, 0, 3")
        try connection.execute("INSERT INTO older(older) VALUES ('rebuild')")
        try exchange(device, as: Self.bob)
        #expect(try device.store.unremovedReason == nil)
        #expect(try purges().first == "bob: confirmed, 3, 0")
    }

    @Test("are counted by device, if the tokens of a user's devices have different roles")
    func twoRoles() throws {
        try secure(
            """
            CREATE POLICY own ON teams USING (owner = martlet_user()) WITH CHECK (true);
            CREATE POLICY office ON teams TO office USING (true);
            CREATE POLICY coaches ON teams TO coach USING (name > 's');
            """)
        try prepare()
        let coach = Principal(name: "c", user: "bob", roles: ["coach"])
        let second = try world.device(script: Self.script)
        try exchange(second, as: coach)
        for _ in 0..<2 {
            for (device, principal) in [(device, Self.bob), (second, coach)] {
                try exchange(device, as: principal)
                #expect(
                    try purges() == [
                        "bob: confirmed, 0, 0", "bob: confirmed, 0, 0", "olga: sees all, 0, 0",
                    ])
            }
        }
        // Team 1 leaves the view of one device, and stays in that of the other.
        try change(other, "UPDATE teams SET owner = 'ann' WHERE id = 1")
        try exchange(other, as: Self.office)
        try exchange(second, as: coach)
        try exchange(device, as: Self.bob)
        #expect(
            try purges().sorted() == [
                "bob: confirmed, 0, 0", "bob: confirmed, 1, 0", "olga: sees all, 0, 0",
            ])
    }

    @Test("leave no copy in the free space of pages")
    func freeSpace() throws {
        try secure(Self.own)
        try prepare()
        func bytes() -> String {
            String(decoding: device.disk.contents(of: "device.sqlite") ?? [], as: UTF8.self)
        }
        // Without secure deletion the last cell of a page stays there, as when SQLite splits a page.
        try device.connection().execute(
            """
            PRAGMA secure_delete = OFF;
            CREATE TABLE scratch(id INTEGER PRIMARY KEY, bird TEXT);
            INSERT INTO scratch VALUES (1, 'siskin'), (2, 'nightingale');
            DELETE FROM scratch WHERE id = 2;
            PRAGMA wal_checkpoint(TRUNCATE);
            """)
        #expect(bytes().contains("nightingale"))
        try giveAway()
        try exchange(device, as: Self.bob)
        try expectPurged()
        #expect(!bytes().contains("nightingale"))
    }

    @Test("stay known to a reader, whose end lets the bytes go")
    func reader() throws {
        try secure(Self.own)
        try prepare()
        let reader = try device.connection()
        try reader.execute("BEGIN; SELECT count(*) FROM teams;")
        try giveAway()
        try exchange(device, as: Self.bob)
        #expect(try device.store.standing.hasTraces)
        try reader.execute("COMMIT")
        try exchange(device, as: Self.bob)
        try expectPurged()
    }
}
