import MartletModel
import MartletRules
import MartletServerCore
import MartletStore
import SmallWorlds
import Testing

@testable import MartletDevice
@testable import MartletServerCore

@Suite("Refused edits of records that left the view, after the server was restored")
struct ParkedAfterRestoreTests {
    private static let script = """
        CREATE TABLE docs(
            id INTEGER PRIMARY KEY, owner TEXT, n INTEGER, title TEXT,
            parent INTEGER REFERENCES docs(id));
        """
    private static let narrow = """
        CREATE POLICY own ON docs USING (owner = martlet_user());
        CREATE POLICY office ON docs TO office USING (true);
        """
    private static let wide = narrow + "CREATE POLICY n ON docs USING (n = 1);"
    private static let ann = Principal(name: "a", user: "ann")
    private static let olga = Principal(name: "o", user: "olga", roles: ["office"])

    private let world: SmallWorld
    /// The device of Ann, and one of the office.
    private let device: SmallDevice
    private let other: SmallDevice

    init() throws {
        world = try SmallWorld(DiskName.next("parked"), script: Self.script)
        (device, other) = (
            try world.device(script: Self.script), try world.device(script: Self.script)
        )
        try secure(world.server, Self.wide)
        for (owner, n) in [("ann", 5), ("ben", 1), ("ben", 6)] as [(String, Int64)] {
            try other.write {
                try $0.insert("docs", ["owner": .text(owner), "n": .integer(n)])
            }
        }
        try exchange(other, as: Self.olga, with: world.server)
    }

    private func secure(_ server: SmallServer, _ rules: String) throws {
        let node = try #require(server.node)
        node.policies = try RulesProgram(rules, schema: node.schema)
    }

    private func change(_ device: SmallDevice, _ sql: String) throws {
        try device.write { try $0.prepare(sql).run([]) }
    }

    private func exchange(
        _ device: SmallDevice, as principal: Principal, with server: SmallServer
    ) throws {
        server.sender = principal
        try device.sync(with: server)
        #expect(device.errors.isEmpty, "\(device.errors)")
    }

    /// Returns the refused changes, as text, with the records to which they refer.
    private func parked() throws -> [String] {
        try device.store.parked().flatMap(\.changes).map { change in
            let parent = change.mine?["parent"] == 2 ? " of 2" : ""
            return "\(change.operation) \(change.id)\(parent)"
        }
    }

    /// Makes a server of the present state, to which the world goes back later.
    private func backup() throws -> SmallServer {
        let backup = try world.restoredServer()
        try secure(backup, Self.narrow)
        try secure(world.server, Self.wide)
        return backup
    }

    @Test(
        "name the records that they named, whenever the device had them first",
        arguments: [false, true])
    func parked(isKnownBefore: Bool) throws {
        if isKnownBefore { try exchange(device, as: Self.ann, with: world.server) }
        let backup = try backup()
        try change(other, "UPDATE docs SET n = 7 WHERE id = 3")
        try exchange(other, as: Self.olga, with: world.server)
        try exchange(device, as: Self.ann, with: world.server)
        try change(device, "UPDATE docs SET title = 'mine' WHERE id = 2")
        try secure(world.server, Self.narrow)
        try exchange(device, as: Self.ann, with: world.server)
        #expect(try device.store.parked().map(\.reason) == [.permission])
        #expect(try parked() == ["update 2"])
        try exchange(device, as: Self.ann, with: backup)
        #expect(try parked() == ["update 2"])
    }

    @Test("that were never sent name the records that they named")
    func unsent() throws {
        let backup = try backup()
        try change(other, "UPDATE docs SET n = 7 WHERE id = 3")
        try exchange(other, as: Self.olga, with: world.server)
        try exchange(device, as: Self.ann, with: world.server)
        try change(device, "UPDATE docs SET title = 'mine' WHERE id = 2")
        try exchange(device, as: Self.ann, with: backup)
        #expect(try parked() == ["update 2"])
    }

    @Test("refer to the records to which they referred, if these are older than the backup")
    func references() throws {
        try exchange(device, as: Self.ann, with: world.server)
        let backup = try backup()
        try device.write { try $0.insert("docs", ["owner": "ben", "n": 1, "parent": 2]) }
        try secure(world.server, Self.narrow)
        try exchange(device, as: Self.ann, with: world.server)
        try change(other, "UPDATE docs SET n = 7 WHERE id IN (1, 3)")
        try exchange(other, as: Self.olga, with: world.server)
        try exchange(device, as: Self.ann, with: world.server)
        let before = try parked()
        #expect(before.count == 1 && before[0].hasSuffix(" of 2"), "\(before)")
        try exchange(device, as: Self.ann, with: backup)
        #expect(try parked() == before)
    }

    @Test("do not name another record, if the backup does not have theirs")
    func lost() throws {
        let backup = try world.restoredServer()
        try other.write { try $0.insert("docs", ["owner": "ben", "n": 1]) }
        try exchange(other, as: Self.olga, with: world.server)
        try exchange(device, as: Self.ann, with: world.server)
        try change(device, "UPDATE docs SET title = 'mine' WHERE id = 4")
        try exchange(device, as: Self.ann, with: backup)
        let sets = try parked()
        #expect(sets.count == 1 && sets[0].hasPrefix("update -"), "\(sets)")
    }
}
