import Foundation
import Martlet
internal import MartletModel
import Testing

@testable import MartletTesting

@Suite("A simulated world, stepped by hand")
struct SimulatedWorldTests {
    private func simulation() -> Simulation {
        Simulation(
            "by hand", schema: .sql("CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT)"),
            devices: 2, faults: .none)
    }

    @Test("two devices that do not know of each other: one edit is taken, the other one kept")
    func refusedEditInSimulation() async throws {
        let world = try SimulatedWorld(simulation(), seed: 1, isRecorded: true)
        try await world.begin()
        let (ann, bea) = (world.devices[0], world.devices[1])
        let team = try await ann.write { try $0.insert("teams", ["name": "Falcons"]) }
        // Whoever has nothing to send asks after a while only.
        try await world.pass(.seconds(1))
        await world.crash(1)
        try await world.pass(.seconds(60))
        await world.disconnect(1)
        let there = try await bea.read { try $0.rows("SELECT id FROM teams") }
        let id = try #require(try there.first?.value("id", as: RecordID.self))
        try await ann.write { try $0.update("teams", team, ["name": "Hawks"]) }
        try await bea.write { try $0.update("teams", id, ["name": "Owls"]) }
        try await world.pass(.seconds(30))
        let apart = try await world.text()
        #expect(apart.lines.contains("server    teams 1: name “Hawks”"))
        #expect(apart.lines.contains("device 1  teams 1: name “Owls”"))
        await world.connect(1)
        try await world.converge()
        let together = try await world.text()
        #expect(
            together.difference(from: apart).split(separator: "\n").contains {
                $0.hasPrefix("+ device 1  refused (") && $0.contains("name “Owls”")
            })
        #expect(together.lines.contains { $0.hasPrefix("device 1  revision 2, 0 sets") })
        #expect(await world.journal().contains { $0.contains("was refused") })
    }

    @Test("who holds a device across a crash gets an error, and later has it again")
    func crash() async throws {
        let world = try SimulatedWorld(simulation(), seed: 1)
        try await world.begin()
        let device = world.devices[0]
        try await device.write { try $0.insert("teams", ["name": "Falcons"]) }
        await world.crash(0)
        let error = await #expect(throws: StoreError.self) {
            try await device.read { try $0.rows("SELECT 1 FROM teams") }
        }
        #expect(error?.kind == .inputOutput)
        #expect(try await world.text().lines.contains("device 0  off"))
        try await world.converge()
        #expect(try await device.read { try $0.rows("SELECT 1 FROM teams").count } == 1)
    }

    @Test("versions and hooks of the app count, and a table made on first use is made")
    func versionsAndHooks() async throws {
        var simulation = Simulation(
            "versions",
            schema: .versions(
                try Migrations([
                    Migration(1, "teams") {
                        try $0.create("CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT)")
                    },
                    Migration(2, "cities") { try $0.addColumn("city TEXT", to: "teams") },
                ])), devices: 2, faults: .none)
        simulation.hooks.before([.insert], of: "teams") { write, _ in
            if write.values?["city"] == .text("Atlantis") {
                throw StoreError(.vetoed, "There is no such city.")
            }
        }
        let world = try SimulatedWorld(simulation, seed: 3)
        try await world.begin()
        let device = world.devices[0]
        try await device.write { try $0.insert("teams", ["name": "Falcons", "city": "Bern"]) }
        let error = await #expect(throws: StoreError.self) {
            try await device.write { try $0.insert("teams", ["name": "A", "city": "Atlantis"]) }
        }
        #expect(error?.kind == .vetoed)
        try await world.converge()
        #expect(
            try await world.text().lines.contains("server    teams 1: city “Bern”, name “Falcons”")
        )
    }

    @Test("a schema that cannot be used is refused where the world is made")
    func schemaOfWorld() throws {
        let simulation = Simulation("wrong", schema: .sql("CREATE TABLE teams (name TEXT)"))
        let error = #expect(throws: StoreError.self) { try SimulatedWorld(simulation, seed: 1) }
        #expect(error?.kind == .schema)
    }
}

@Suite("Fault plans as data")
struct FaultPlanTests {
    @Test(
        "a plan is its rates that are not those of no faults",
        arguments: FaultPlan.rates.map(\.name))
    func rate(name: String) throws {
        let rate = try #require(FaultPlan.rates.first { $0.name == name })
        var plan = FaultPlan.none
        plan[keyPath: rate.path] += 3
        let json = String(decoding: try JSONEncoder().encode(plan), as: UTF8.self)
        #expect(json == "{\"\(name)\":\(plan[keyPath: rate.path])}")
        #expect(try JSONDecoder().decode(FaultPlan.self, from: Data(json.utf8)) == plan)
    }

    @Test("all rates have names, and a name that no rate has is refused with those there are")
    func namesOfRates() throws {
        #expect(FaultPlan.rates.count == Mirror(reflecting: FaultPlan()).children.count)
        let wrong = Data("{\"lostRequest\":3}".utf8)
        let error = #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(FaultPlan.self, from: wrong)
        }
        #expect("\(try #require(error))".contains("lostRequests, lostAnswers"))
    }
}
