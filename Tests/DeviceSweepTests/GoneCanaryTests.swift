import MartletModel
import MartletRules
import MartletStore
import SQLiteFaults
import SQLiteKit
import SmallWorlds
import Testing

@testable import MartletDevice
@testable import MartletServerCore

/// Values that a device keeps of records that are gone, if nobody can tell whether they were hidden first.
@Suite("Kept values of records that are gone")
struct GoneCanaryTests {
    private static let script = """
        CREATE TABLE members(id INTEGER PRIMARY KEY, person TEXT, team INTEGER);
        CREATE TABLE players(id INTEGER PRIMARY KEY, team INTEGER, name TEXT, fee INTEGER);
        CREATE TABLE clubs(id INTEGER PRIMARY KEY, name TEXT, city TEXT);
        """
    /// Shows a part of the players, and all clubs.
    private static let part = """
        CREATE POLICY own ON players
            USING (team IN (SELECT team FROM members WHERE person = martlet_user()));
        CREATE POLICY self ON members FOR SELECT USING (person = martlet_user());
        CREATE POLICY every ON clubs USING (true);
        CREATE POLICY office ON members TO office USING (true);
        CREATE POLICY office ON players TO office USING (true);
        """
    private static let canary = "nightingale"
    private static let bob = Principal(name: "b", user: "bob")
    private static let olga = Principal(name: "office", user: "olga", roles: ["office"])

    private let world: SmallWorld
    /// Bob's device, and one of the office.
    private let device: SmallDevice
    private let office: SmallDevice

    init() throws {
        world = try SmallWorld(DiskName.next("gone"), script: Self.script)
        (device, office) = (
            try world.device(script: Self.script), try world.device(script: Self.script)
        )
    }

    private func secure(_ server: SmallServer) throws {
        let node = try #require(server.node)
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

    private func change(_ device: SmallDevice, _ statements: String...) throws {
        try device.write { context in
            for sql in statements { try context.prepare(sql).run([]) }
        }
    }

    /// Has the office change something.
    private func decree(_ statements: String...) throws {
        try office.write { context in
            for sql in statements { try context.prepare(sql).run([]) }
        }
        try exchange(office, as: Self.olga)
    }

    /// Makes three players of Bob's team, which he has edited: 1 is accepted, 2 is refused.
    private func prepare() throws {
        try office.write { context in
            _ = try context.insert("members", ["person": "bob", "team": 1])
            for _ in 0..<3 {
                _ = try context.insert("players", ["team": 1, "name": .text(Self.canary)])
            }
            _ = try context.insert("clubs", ["name": "Owls", "city": "Oslo"])
        }
        try exchange(office, as: Self.olga)
        try exchange(device, as: Self.bob)
        try change(device, "UPDATE players SET fee = 71 WHERE id = 1")
        try exchange(device, as: Self.bob)
        try decree("UPDATE players SET fee = 5 WHERE id = 2")
        try change(device, "UPDATE players SET fee = 72 WHERE id = 2")
        try exchange(device, as: Self.bob)
        #expect(try device.store.parked().map(\.reason) == [.stale])
        #expect(try bases() == 2)
    }

    /// Returns how many edits have an earlier value.
    private func bases() throws -> Int64 {
        try ["changes", "parked_changes", "confirmed_changes"].reduce(0) { count, table in
            let find = "SELECT count(*) FROM martlet_\(table) WHERE base IS NOT NULL"
            return count + (try device.connection().integer(find) ?? 0)
        }
    }

    /// Expects that Bob's device has what he wrote, and nothing else of the players.
    private func expectPurged(_ reasons: [RefusalReason], _ fees: [SQLValue?]) throws {
        let store = try device.store
        #expect(try device.connection().integer("SELECT count(*) FROM players") == 0)
        #expect(try store.outboxCount == 0 && bases() == 0)
        let sets = try store.parked()
        #expect(sets.map(\.reason) == reasons)
        #expect(sets.map { $0.changes.first?.mine?["fee"] } == fees)
        #expect(sets.allSatisfy { $0.changes.allSatisfy { $0.base == nil && $0.theirs == nil } })
        #expect(try !store.standing.hasTraces && !store.standing.owesReceipt)
        let bytes = ["device.sqlite", "device.sqlite-wal"].flatMap {
            device.disk.contents(of: $0) ?? []
        }
        #expect(!String(decoding: bytes, as: UTF8.self).contains(Self.canary))
    }

    enum Order: CaseIterable { case hiddenFirst, together, whileShown, thenHidden }

    @Test(
        "go with records of a part, whether or not these were hidden first",
        arguments: Order.allCases)
    func deleted(order: Order) throws {
        try secure(world.server)
        try prepare()
        try change(device, "UPDATE players SET fee = 73 WHERE id = 3")
        let (hide, delete) = ("DELETE FROM members", "DELETE FROM players")
        switch order {
        case .hiddenFirst:
            try decree(hide)
            try decree(delete)
        case .together: try decree(hide, delete)
        case .whileShown: try decree(delete)
        case .thenHidden:
            try decree(delete)
            try exchange(device, as: Self.bob)
            try decree(hide)
        }
        try exchange(device, as: Self.bob)
        try expectPurged([.stale, .permission], [72, 73])
        let message = try #require(try device.store.parked().last?.message)
        #expect(message.contains("may have been deleted"), "\(message)")
        // They are the three players, and the membership if it is gone.
        #expect(try device.store.standing.removed.count == (order == .whileShown ? 3 : 4))
    }

    @Test("stay with a record of a type that the user sees whole, for the person who decides")
    func whole() throws {
        try secure(world.server)
        try prepare()
        try change(device, "UPDATE clubs SET city = 'Bergen' WHERE id = 1")
        try decree("DELETE FROM clubs")
        try exchange(device, as: Self.bob)
        let set = try #require(try device.store.parked().last)
        #expect(set.reason == .stale && set.changes.first?.base?["name"] == "Owls")
        #expect(try device.store.standing.removed.count == 0)
    }

    @Test("stay with a record that the user deleted himself, in case the server loses his set")
    func ownDeletion() throws {
        try secure(world.server)
        try prepare()
        try change(device, "DELETE FROM players WHERE id = 1")
        try exchange(device, as: Self.bob)
        #expect(try device.store.outboxCount == 0 && device.store.parked().count == 1)
        #expect(try bases() == 3)
        #expect(try device.store.standing.removed.count == 0)
        try exchange(office, as: Self.olga)
        #expect(try office.connection().integer("SELECT count(*) FROM players") == 2)
    }

    @Test(
        "go if the server is restored, and shows the user a part from then on",
        arguments: [false, true])
    func restored(waits: Bool) throws {
        try prepare()
        // So he will see no player.
        try decree("DELETE FROM members")
        let backup = try world.restoredServer()
        try decree("UPDATE players SET fee = 9 WHERE id = 1")
        try exchange(device, as: Self.bob)
        if waits { try change(device, "UPDATE players SET fee = 73 WHERE id = 3") }
        try secure(backup)
        try exchange(device, as: Self.bob, with: backup)
        try expectPurged(waits ? [.stale, .stale] : [.stale], waits ? [72, 73] : [72])
        #expect(try device.store.standing.view ?? 0 != 0)
        #expect(try device.store.standing.removed.count == 3)
        #expect(try device.connection().integer("SELECT count(*) FROM clubs") == 1)
    }
}
