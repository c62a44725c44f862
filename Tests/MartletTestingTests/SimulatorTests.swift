import Testing

@testable import MartletTesting

@Suite("Simulator")
struct SimulatorTests {
    @Test(
        "a world without faults comes to rest with equal replicas", arguments: [1, 2] as [UInt64])
    func faultless(seed: UInt64) throws {
        var options = Simulator.Options()
        options.steps = 300
        options.faults = .none
        options.faults.snapshots = 50
        options.faults.lazySeeding = 60
        let report = try Simulator(seed: seed, options: options).run()
        #expect(report.accepted > 10)
        #expect(report.lostMessages == 0 && report.deviceCrashes == 0)
    }

    @Test("a world with faults keeps every promise", arguments: 1...3 as ClosedRange<UInt64>)
    func faulty(seed: UInt64) throws {
        var options = Simulator.Options()
        options.steps = 250
        let report = try Simulator(seed: seed, options: options).run()
        #expect(report.accepted > 10)
        #expect(report.lostMessages > 0)
    }

    @Test("what another program writes to the server's file comes to every device")
    func externalWritesInSimulation() throws {
        var options = Simulator.Options()
        options.steps = 300
        let report = try Simulator(seed: 5, options: options).run()
        #expect(report.externalWrites > 0)
        options.writesExternal = false
        #expect(try Simulator(seed: 5, options: options).run().externalWrites == 0)
    }

    @Test(
        "people of a world with policies get and change what these allow, while their rights change"
    )
    func policies() throws {
        var options = Simulator.Options()
        options.steps = 400
        options.policies = 100
        let reports = try (1...6 as ClosedRange<UInt64>).map {
            try Simulator(seed: $0, options: options).run()
        }
        #expect(reports.map(\.moves).reduce(0, +) > 100)
        #expect(reports.map(\.purges).reduce(0, +) > 10)
        #expect(reports.map(\.forbidden).reduce(0, +) > 5)
    }

    @Test("marks are found in bytes, and nothing else is")
    func marks() {
        let text = "‹12› d3.‹4.15›‹7› ‹1‹2›› ‹3.x› “‹5.0›” ‹ 6› ‹8"
        #expect(Marks.found(in: text.utf8) == ["‹12›", "‹4.15›", "‹7›", "‹2›", "‹5.0›"])
        #expect(Marks.number(of: "‹12.4›") == 12)
    }

    @Test("what waits for parts may lack a record that newer parts no longer have")
    func goneFromNewerParts() throws {
        var options = Simulator.Options()
        options.steps = 300
        options.isMixed = false
        options.faults.newSnapshots = 100
        let found = try (1...40).first {
            try Simulator(seed: $0, options: options).run().partsGone > 0
        }
        #expect(found != nil)
    }

    @Test("the same seed gives the same run, event for event; another seed another")
    func determinism() throws {
        var options = Simulator.Options()
        options.steps = 250
        let first = try Simulator(seed: 77, options: options).run()
        let second = try Simulator(seed: 77, options: options).run()
        let other = try Simulator(seed: 78, options: options).run()
        #expect(first == second)
        #expect(first.trace != other.trace)
    }
}
