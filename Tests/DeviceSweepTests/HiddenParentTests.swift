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

@Suite("Waiting sets that refer to records which their user may not see any more")
struct HiddenParentTests {
    private static let script = """
        CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT, owner TEXT);
        CREATE TABLE clubs(id TEXT PRIMARY KEY NOT NULL, name TEXT);
        CREATE TABLE players(
            id INTEGER PRIMARY KEY, name TEXT, team INTEGER REFERENCES teams(id), club TEXT REFERENCES clubs(id));
        """
    private static let own = """
        CREATE POLICY own ON teams USING (owner = martlet_user()) WITH CHECK (true);
        CREATE POLICY office ON teams TO office USING (true);
        CREATE POLICY every ON clubs USING (true) WITH CHECK (name <> 'bad');
        CREATE POLICY every ON players USING (true);
        """
    private static let bob = Principal(name: "b", user: "bob")
    private static let office = Principal(name: "office", user: "olga", roles: ["office"])

    private let world: SmallWorld
    /// Bob's device, and one of the office.
    private let device: SmallDevice
    private let other: SmallDevice

    /// Makes five teams of Bob.
    init() throws {
        world = try SmallWorld(DiskName.next("hidden-parent"), script: Self.script)
        (device, other) = (
            try world.device(script: Self.script), try world.device(script: Self.script)
        )
        for number in 1...5 {
            try other.write {
                _ = try $0.insert("teams", ["name": .text("T\(number)"), "owner": "bob"])
            }
        }
        try exchange(other, as: Self.office)
    }

    private func secure() throws {
        let node = try #require(world.server.node)
        node.policies = try RulesProgram(Self.own, schema: node.schema)
    }

    /// Exchanges until the device has nothing to do.
    /// - Parameter work: The work that the user does while the first answer is under way.
    private func exchange(
        _ device: SmallDevice, as principal: Principal, meanwhile work: (() throws -> Void)? = nil
    ) throws {
        world.server.sender = principal
        var work = work
        device.whileAnswered = {
            let now = work
            work = nil
            try now?()
        }
        for _ in 0..<2 {
            try device.sync(with: world.server)
            #expect(device.errors.isEmpty, "\(device.errors)")
        }
    }

    /// The office changes teams.
    private func change(_ sql: String) throws {
        try other.write { try $0.prepare(sql).run([]) }
        try exchange(other, as: Self.office)
    }

    private func giveAway(upTo team: Int) throws {
        try change("UPDATE teams SET owner = 'ann' WHERE id <= \(team)")
    }

    private func addPlayer(_ values: RecordValues) throws {
        try device.write { _ = try $0.insert("players", values) }
    }

    private func rows(_ connection: Connection, _ query: String) throws -> [String] {
        try connection.statement(query).rows { (row) throws(SQLiteError) in
            (0..<row.columnCount).map { row.isNull($0) ? "-" : row.text($0) }
                .joined(separator: " ")
        }
    }

    /// Expects that the server and Bob's device have one player, and that nothing waits or is refused.
    private func expectPlayer(_ player: String, teams: [String]) throws {
        #expect(try device.store.parked().map(\.message) == [])
        #expect(try device.store.outboxCount == 0)
        let query = "SELECT name, team FROM players"
        #expect(try rows(world.server.connection(), query) == [player])
        #expect(try rows(device.connection(), query) == [player])
        #expect(try rows(device.connection(), "SELECT id FROM teams") == teams)
    }

    enum Way: CaseIterable {
        /// The set is saved while the answer is under way that hides the record.
        case meanwhile
        /// That answer is applied in slices.
        case sliced
        /// The device had everything, and fetches what its user may see.
        case demoted
        /// The device fetches everything again while the set waits.
        case refetched
    }

    @Test("are left to the server, with the reference", arguments: Way.allCases)
    func hidden(_ way: Way) throws {
        if way != .demoted { try secure() }
        try exchange(device, as: Self.bob)
        #expect(try (device.store.standing.view ?? 0 == 0) == (way == .demoted))
        let hidden = way == .sliced ? 4 : 1
        func save() throws { try addPlayer(["name": "Pia", "team": 1]) }
        if way == .refetched { try save() }
        try giveAway(upTo: hidden)
        if way == .demoted { try secure() }
        if way == .refetched { try device.beginRefetching(script: Self.script) }
        try exchange(device, as: Self.bob, meanwhile: way == .refetched ? nil : save)
        try expectPlayer("Pia 1", teams: (hidden + 1...5).map { "\($0)" })
    }

    @Test("are left to the server also if the record left in an earlier answer")
    func hiddenBefore() throws {
        try secure()
        try exchange(device, as: Self.bob)
        try giveAway(upTo: 1)
        try exchange(device, as: Self.bob)
        try giveAway(upTo: 2)
        // Another program, which does not check references, knows the id.
        try exchange(device, as: Self.bob) {
            try device.connection().execute(
                """
                INSERT INTO players(id, name, team) VALUES ((SELECT id FROM martlet_new_id), 'Kim', 1)
                """)
        }
        try expectPlayer("Kim 1", teams: ["3", "4", "5"])
    }

    @Test("are left to the server if their user made the record for somebody else")
    func madeForOthers() throws {
        try secure()
        try exchange(device, as: Self.bob)
        let id = try device.write {
            try $0.insert("teams", ["name": "T6", "owner": "ann"])
        }
        let team = try #require(id.isTemporary ? Int64(id.description) : nil)
        try exchange(device, as: Self.bob) {
            try addPlayer(["name": "Pia", "team": .integer(team)])
        }
        try expectPlayer("Pia 6", teams: ["1", "2", "3", "4", "5"])
    }

    /// Expects that the set of a player was refused on the device, and not sent.
    /// - Parameter work: What the device does until then.
    private func expectRefused(_ names: [String], _ work: () throws -> Void) throws {
        var sent: [String] = []
        world.server.checkRequest = {
            let sets = try SyncCoder.decodeRequest($0).changeSets
            sent += sets.flatMap { $0.types.map(\.name) }
        }
        try work()
        #expect(sent == names)
        let set = try #require(try device.store.parked().last)
        #expect(set.reason == .dependency && set.changes.map(\.type) == ["players"])
        #expect(set.changes.first?.mine?["name"] == "Pia")
        #expect(try device.store.outboxCount == 0)
    }

    @Test("are refused on the device if somebody deleted the record, and the type is shown whole")
    func deleted() throws {
        try secure()
        try change("INSERT INTO clubs (id, name) VALUES ('c', 'C')")
        try exchange(device, as: Self.bob)
        try change("DELETE FROM clubs WHERE id = 'c'")
        try expectRefused([]) {
            try exchange(device, as: Self.bob) { try addPlayer(["name": "Pia", "club": "c"]) }
        }
    }

    @Test(
        "are refused by the server if somebody deleted the record, and the user sees a part of the type"
    )
    func deletedOfPart() throws {
        try secure()
        try exchange(device, as: Self.bob)
        try change("DELETE FROM teams WHERE id = 1")
        try exchange(device, as: Self.bob) { try addPlayer(["name": "Pia", "team": 1]) }
        let set = try #require(try device.store.parked().last)
        #expect(set.reason == .constraint && set.changes.map(\.type) == ["players"])
        #expect(set.changes.first?.mine?["name"] == "Pia")
        #expect(try device.store.outboxCount == 0)
    }

    @Test("are refused on the device if the set that was to make the record is refused")
    func neverMade() throws {
        try secure()
        try exchange(device, as: Self.bob)
        try device.store.judgesSaves = false
        try device.write { _ = try $0.insert("clubs", ["name": "bad"], id: "c") }
        try expectRefused(["clubs"]) {
            try exchange(device, as: Self.bob) { try addPlayer(["name": "Pia", "club": "c"]) }
        }
        #expect(try device.store.parked().map(\.reason) == [.permission, .dependency])
    }
}
