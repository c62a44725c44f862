import Foundation
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

@Suite("Devices of people who see a part, at random")
struct ViewsAtRandomTests {
    /// MARTLET_VIEWED_WORLDS names how many worlds there are, from MARTLET_VIEWED_SEED on.
    private static let seeds: Range<UInt64> = {
        let environment = ProcessInfo.processInfo.environment
        let first = environment["MARTLET_VIEWED_SEED"].flatMap { UInt64($0) } ?? 1
        return first..<first + (environment["MARTLET_VIEWED_WORLDS"].flatMap { UInt64($0) } ?? 4)
    }()

    @Test(
        "have what their users may see, no byte of anything else, and no edit is lost",
        arguments: seeds)
    func views(seed: UInt64) throws {
        var team = try ViewedTeam(seed: seed)
        for _ in 0..<100 { try team.step() }
        try team.end()
        #expect(team.moved > 30 && team.judged > 0)
    }

    @Test(
        "that begin with a snapshot of a view have its rows, also if they lose it and get no other",
        arguments: [false, true])
    func snapshot(isLost: Bool) throws {
        let world = try SmallWorld(DiskName.next("begun"))
        let (office, disk) = (try world.device(), FaultDisk(name: DiskName.next("seeded"), seed: 7))
        try office.write { context in
            for name in ["A", "Canary"] { _ = try context.insert("teams", ["name": .text(name)]) }
        }
        try office.sync(with: world.server)
        let node = try #require(world.server.node)
        node.policies = try RulesProgram(
            "CREATE POLICY one ON teams USING (id = 1);", schema: node.schema)
        let bob = Principal(name: "b", user: "bob")
        let device = SmallDevice(switchedOff: disk, number: 7)
        device.snapshot = try world.server.snapshot(for: bob)
        #expect(device.snapshot?.manifest.view != nil)
        try device.open()
        world.server.sender = bob
        let path = try device.store.snapshotPath
        if isLost {
            device.whileAnswered = {
                guard device.disk.contents(of: path)?.isEmpty == false else { return }
                device.disk.install([1], at: path)
                // From now on, the server has one of another view.
                world.server.sender = Principal(name: "staff")
                node.policies = nil
                device.snapshot = try world.server.snapshot()
                node.policies = try RulesProgram(
                    "CREATE POLICY one ON teams USING (id = 1);", schema: node.schema)
                world.server.sender = bob
                device.whileAnswered = {}
            }
        }
        try device.sync(with: world.server)
        try device.sync(with: world.server)
        let rows = try device.connection().prepare("SELECT group_concat(name) FROM teams")
        #expect(try rows.step() && rows.text(0) == "A")
        #expect(try device.store.pendingSnapshot == nil)
        #expect(device.disk.contents(of: path) == nil)
    }

    @Test("begin again if they had everything, and lose no edit")
    func demoted() throws {
        let world = try SmallWorld(DiskName.next("demoted"))
        let rules = "CREATE POLICY one ON teams USING (id = 1) WITH CHECK (true);"
        let (device, other) = (try world.device(), try world.device())
        try device.write { context in
            for name in ["A", "B"] { _ = try context.insert("teams", ["name": .text(name)]) }
        }
        try device.sync(with: world.server)
        let node = try #require(world.server.node)
        node.policies = try RulesProgram(rules, schema: node.schema)
        world.server.sender = Principal(name: "b", user: "bob")
        try other.write { _ = try $0.insert("teams", ["name": "C"]) }
        try other.sync(with: world.server)
        world.server.sender = Principal(name: "staff")
        try device.write { context in
            try context.prepare("UPDATE teams SET city = 'Rome' WHERE id = 1").run([])
        }
        try device.sync(with: world.server)
        #expect(device.errors.isEmpty, "\(device.errors)")
        let rows = try device.connection().prepare("SELECT name, city FROM teams")
        #expect(try rows.step() && rows.text(0) == "A" && rows.text(1) == "Rome")
        #expect(try !rows.step())
        #expect(try device.store.outboxCount == 0 && device.store.parked().isEmpty)
    }
}
