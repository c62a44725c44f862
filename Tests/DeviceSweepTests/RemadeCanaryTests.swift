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

/// Values that a device keeps of deleted records, if others have been made under their keys since.
@Suite("Kept values of deleted records whose keys were given to others")
struct RemadeCanaryTests {
    private static let script = """
        CREATE TABLE members(id INTEGER PRIMARY KEY, person TEXT, team INTEGER);
        CREATE TABLE tags(key TEXT PRIMARY KEY, team INTEGER, label TEXT, note TEXT);
        CREATE TABLE clubs(key TEXT PRIMARY KEY, name TEXT, city TEXT);
        """
    /// Shows a part of the tags, and all clubs.
    private static let part = """
        CREATE POLICY own ON tags
            USING (team IN (SELECT team FROM members WHERE person = martlet_user()));
        CREATE POLICY self ON members FOR SELECT USING (person = martlet_user());
        CREATE POLICY every ON clubs USING (true);
        CREATE POLICY office ON members TO office USING (true);
        CREATE POLICY office ON tags TO office USING (true);
        """
    private static let canary = "nightingale"
    private static let bob = Principal(name: "b", user: "bob")
    private static let olga = Principal(name: "office", user: "olga", roles: ["office"])
    private static let keys = ["k1", "k2", "k3"]

    private let world: SmallWorld
    /// Two devices of Bob, and one of the office.
    private let device: SmallDevice
    private let second: SmallDevice
    private let office: SmallDevice

    /// Small answers have a few records, so a difference comes in parts, and is applied in slices.
    init() throws { try self.init(hasSmallAnswers: true) }

    private init(hasSmallAnswers: Bool) throws {
        var pace = SmallPace()
        if !hasSmallAnswers { (pace.answerBytes, pace.sliceRecords) = (64 << 10, 400) }
        world = try SmallWorld(DiskName.next("remade"), script: Self.script, pace: pace)
        (device, second, office) = (
            try world.device(script: Self.script), try world.device(script: Self.script),
            try world.device(script: Self.script)
        )
    }

    private func secure(_ server: SmallServer? = nil) throws {
        let node = try #require((server ?? world.server).node)
        node.policies = try RulesProgram(Self.part, schema: node.schema)
    }

    private func exchange(
        _ device: SmallDevice, as principal: Principal, with server: SmallServer? = nil
    ) throws {
        let server = server ?? world.server
        server.sender = principal
        try device.sync(with: server)
        #expect(device.errors.isEmpty, "\(device.errors)")
    }

    private func change(_ device: SmallDevice, _ sql: String) throws {
        try device.write { try $0.prepare(sql).run([]) }
    }

    /// Has the office change something.
    private func decree(_ sql: String) throws {
        try change(office, sql)
        try exchange(office, as: Self.olga)
    }

    private func makeTags(_ label: String, team: Int) throws {
        try office.write { context in
            for key in Self.keys {
                _ = try context.insert(
                    "tags", ["team": .integer(Int64(team)), "label": .text(label)], id: key)
            }
        }
    }

    /// Makes three tags of Bob's second team, which he has edited: 1 is accepted, 2 is refused, 3 waits.
    private func prepare() throws {
        try office.write { context in
            for team in 1...2 {
                _ = try context.insert("members", ["person": "bob", "team": .integer(Int64(team))])
            }
            _ = try context.insert("clubs", ["name": "Owls", "city": "Oslo"], id: "c1")
        }
        try makeTags(Self.canary, team: 2)
        try exchange(office, as: Self.olga)
        for device in [device, second] { try exchange(device, as: Self.bob) }
        try change(device, "UPDATE tags SET note = 'mine1' WHERE key = 'k1'")
        try exchange(device, as: Self.bob)
        try decree("UPDATE tags SET note = 'theirs' WHERE key = 'k2'")
        try change(device, "UPDATE tags SET note = 'mine2' WHERE key = 'k2'")
        try exchange(device, as: Self.bob)
        #expect(try device.store.parked().map(\.reason) == [.stale])
        try change(device, "UPDATE tags SET note = 'mine3' WHERE key = 'k3'")
        #expect(try bases() == 3)
    }

    /// Returns how many edits have an earlier value.
    private func bases() throws -> Int64 {
        try ["changes", "parked_changes", "confirmed_changes"].reduce(0) { count, table in
            let find = "SELECT count(*) FROM martlet_\(table) WHERE base IS NOT NULL"
            return count + (try device.connection().integer(find) ?? 0)
        }
    }

    /// Expects that Bob's device has the new tags and what he wrote, and nothing else.
    private func expectPurged() throws {
        let store = try device.store
        let labels = try device.connection().prepare(
            "SELECT key, label, note FROM tags ORDER BY key"
        )
        .rows { (row) throws(SQLiteError) in
            "\(row.text(0)) \(row.text(1)) \(row.isNull(2) ? "" : row.text(2))"
        }
        #expect(labels == ["k1 wren ", "k2 wren ", "k3 wren "])
        #expect(try store.outboxCount == 0 && bases() == 0)
        let sets = try store.parked()
        #expect(sets.map(\.reason) == [.stale, .stale])
        #expect(sets.map { $0.changes.first?.mine?["note"] } == ["mine2", "mine3"])
        #expect(sets.allSatisfy { $0.changes.allSatisfy { $0.base == nil } })
        #expect(try !store.standing.hasTraces && !store.standing.owesReceipt)
        let bytes = ["device.sqlite", "device.sqlite-wal"].flatMap {
            device.disk.contents(of: $0) ?? []
        }
        #expect(!String(decoding: bytes, as: UTF8.self).contains(Self.canary))
    }

    enum Course: CaseIterable {
        /// The tags leave Bob's view before they are deleted.
        case hiddenFirst
        case whileShown
        /// The office saves twice, and exchanges once.
        case inOneRequest
        /// Another device of Bob asks in between, so that the server computes his view.
        case seenBetween
        /// Another program writes to the server's file.
        case byProgram
    }

    /// Has another program write to the server's file.
    private func runProgram(_ sql: String) throws {
        try world.server.connection().execute(sql)
        let node = try #require(world.server.node)
        while node.takeExternalWrites(now: 0) {}
        try #require(node.takeFault() == nil)
    }

    private func remake(_ course: Course) throws {
        switch course {
        case .hiddenFirst, .seenBetween: try decree("DELETE FROM members WHERE team = 2")
        default: break
        }
        switch course {
        case .inOneRequest: try change(office, "DELETE FROM tags")
        case .byProgram:
            try runProgram("DELETE FROM tags")
            try runProgram(
                "INSERT INTO tags(key, team, label) VALUES ('k1', 1, 'wren'), ('k2', 1, 'wren'),"
                    + " ('k3', 1, 'wren')")
        default: try decree("DELETE FROM tags")
        }
        if course == .seenBetween { try exchange(second, as: Self.bob) }
        if course != .byProgram { try makeTags("wren", team: 1) }
        try exchange(office, as: Self.olga)
    }

    @Test("go with records of a part", arguments: Course.allCases, [false, true])
    func remade(course: Course, hasSmallAnswers: Bool) throws {
        let team = try Self(hasSmallAnswers: hasSmallAnswers)
        try team.secure()
        try team.prepare()
        try team.remake(course)
        try team.exchange(team.device, as: Self.bob)
        try team.expectPurged()
        // The other device shows the new tags, too, and nothing is left to do.
        try team.exchange(team.second, as: Self.bob)
        #expect(
            try team.second.connection().integer("SELECT count(*) FROM tags WHERE label = 'wren'")
                == 3)
        try team.exchange(team.device, as: Self.bob)
        try team.expectPurged()
    }

    @Test("go if the device fetches everything again", arguments: [false, true])
    func refetched(isDemoted: Bool) throws {
        if !isDemoted { try secure() }
        try prepare()
        try remake(.hiddenFirst)
        if isDemoted { try secure() } else { try device.beginRefetching(script: Self.script) }
        try exchange(device, as: Self.bob)
        try expectPurged()
    }

    @Test("go if the server was restored")
    func restored() throws {
        try secure()
        try prepare()
        let backup = try world.restoredServer()
        try secure(backup)
        try decree("UPDATE clubs SET city = 'Bergen'")
        try exchange(device, as: Self.bob)
        let other = try world.device(script: Self.script)
        try exchange(other, as: Self.olga, with: backup)
        try change(other, "DELETE FROM tags")
        try exchange(other, as: Self.olga, with: backup)
        try other.write { context in
            for key in Self.keys {
                _ = try context.insert("tags", ["team": 1, "label": "wren"], id: key)
            }
        }
        try exchange(other, as: Self.olga, with: backup)
        try exchange(device, as: Self.bob, with: backup)
        #expect(try bases() == 0)
        #expect(
            try device.connection().integer("SELECT count(*) FROM tags WHERE label = 'wren'") == 3)
    }

    @Test("stay with records that left the view and came back", arguments: [false, true])
    func cameBack(isSeenBetween: Bool) throws {
        try secure()
        try prepare()
        try decree("DELETE FROM members WHERE team = 2")
        if isSeenBetween { try exchange(second, as: Self.bob) }
        try decree("INSERT INTO members(id, person, team) SELECT id, 'bob', 2 FROM martlet_new_id")
        try exchange(device, as: Self.bob)
        #expect(try device.store.outboxCount == 0)
        let set = try #require(try device.store.parked().first)
        #expect(set.changes.first?.base?["label"] == .text(Self.canary))
        #expect(try bases() == 3)
    }

    @Test("stay with records of a type that the user sees whole, for the person who decides")
    func whole() throws {
        try secure()
        try prepare()
        try change(device, "UPDATE clubs SET city = 'Bergen'")
        try decree("DELETE FROM clubs")
        try office.write { _ = try $0.insert("clubs", ["name": "Jays"], id: "c1") }
        try exchange(office, as: Self.olga)
        try exchange(device, as: Self.bob)
        let set = try #require(try device.store.parked().last)
        #expect(set.reason == .stale && set.changes.first?.base?["name"] == "Owls")
        #expect(set.changes.first?.theirs?["name"] == "Jays")
    }
}
