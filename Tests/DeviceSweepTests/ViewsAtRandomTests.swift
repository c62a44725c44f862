import Foundation
import MartletModel
import MartletRules
import MartletStore
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
