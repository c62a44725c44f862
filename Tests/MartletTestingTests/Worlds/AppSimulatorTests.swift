import Martlet
internal import MartletDevice
internal import MartletModel
internal import MartletStore
import Testing

@testable import MartletTesting

@Suite("Simulations of an app")
struct AppSimulatorTests {
    @Test("an app whose resolver keeps everything passes, with everything going wrong")
    func sound() async throws {
        var simulation = NotesApp.simulation(faults: FaultPlan())
        simulation.resolver = NotesApp.append
        simulation.tolerated = Set(FaultKind.allCases)
        simulation.atRest("nothing stands twice") { devices in
            let bodies = try await devices[0].read { try $0.rows("SELECT body FROM notes") }
            for body in bodies {
                let marks = try body.value("body", as: String.self).split(separator: "‹")
                if Set(marks).count < marks.count { return "\(body)" }
            }
            return nil
        }
        let summary = try await simulation.run(seeds: 1...6)
        #expect(summary.worlds == 6)
        #expect(summary.report.accepted > 20)
        #expect(summary.report.refused > 0)
    }

    @Test("the same seed gives the same world, event for event; another seed another")
    func determinism() async throws {
        var simulation = NotesApp.simulation(faults: FaultPlan())
        simulation.randomEdits()
        var reports: [SimulationReport] = []
        var texts: [WorldText] = []
        simulation.steps = 120
        for seed in [7, 7, 8] as [UInt64] {
            let world = try SimulatedWorld(simulation, seed: seed)
            reports.append(try await world.run())
            texts.append(try await world.text())
        }
        #expect(reports[0] == reports[1])
        #expect(texts[0] == texts[1])
        #expect(texts[1].difference(from: texts[0]).isEmpty)
        #expect(reports[0].trace != reports[2].trace)
        #expect(texts[2].difference(from: texts[0]).contains("\n+ server"))
    }

    @Test("each device has the records that the rules show to its person")
    func rules() async throws {
        var simulation = NotesApp.simulation(steps: 300, faults: FaultPlan())
        simulation.tolerated = Set(FaultKind.allCases)
        simulation.rules = """
            CREATE POLICY second ON notes USING (title = 'second' OR title = martlet_claim('title'));
            CREATE POLICY office ON notes TO office USING (true);
            """
        simulation.people = [
            SimulatedPerson("olga", roles: ["office"]), SimulatedPerson("ann"),
            SimulatedPerson("ben", claims: ["title": "first"]),
        ]
        simulation.atRest("Ann has one note") { devices in
            var counts: [Int] = []
            for device in devices {
                counts.append(try await device.read { try $0.rows("SELECT 1 FROM notes").count })
            }
            return counts == Array([2, 1, 2].prefix(devices.count)) ? nil : "\(counts)"
        }
        let summary = try await simulation.run(seeds: 1...4)
        #expect(summary.report.moves > 0)
    }

    @Test("rules that do not fit the tables are told before anything runs")
    func wrongRules() async throws {
        var simulation = NotesApp.simulation()
        simulation.rules = "CREATE POLICY every ON note USING (true);"
        let wrong = simulation
        let error = await #expect(throws: StoreError.self) { try await wrong.run(seeds: 1...1) }
        #expect(error?.message.contains("no type “note”") == true)
    }

    @Test("a resolver that drops an edit is found, shrunk, and replayed as it was")
    func planted() async throws {
        var simulation = NotesApp.simulation("planted()")
        simulation.resolver = NotesApp.forget
        let forgetful = simulation
        let found = try #require(
            await #expect(throws: FoundFailure.self) { try await forgetful.run(seeds: 1...20) })
        #expect(found.failure.message.hasPrefix("an edit is lost"))
        #expect(found.failure.message.contains("the resolver dropped it"))
        #expect(found.plan.devices <= 2)
        #expect(found.plan.steps <= 100)
        let text = found.description
        #expect(text.contains("somebody writes into a note"))
        #expect(text.contains("drops the refused set"))
        #expect(text.contains("Shrunk from seed"))
        #expect(text.contains("MARTLET_REPLAY='{"))
        #expect(text.hasSuffix("swift test --filter 'planted'"))

        let json = try #require(text.split(separator: "'").first { $0.hasPrefix("{") })
        let environment = [WorldPlan.variable: String(json)]
        let again = try #require(
            await #expect(throws: FoundFailure.self) {
                try await forgetful.run(seeds: 500...500, environment: environment)
            })
        #expect(again.plan == found.plan)
        #expect(again.failure.message == found.failure.message)
        #expect(again.journal == found.journal)
        // The command is for one simulation; others run their own seeds.
        var other = NotesApp.simulation("another()")
        other.resolver = NotesApp.append
        other.tolerated = Set(FaultKind.allCases)
        #expect(try await other.run(seeds: 1...1, environment: environment).worlds == 1)
    }

    @Test("what a user gives up is no loss, whoever typed it")
    func givenUpByUser() async throws {
        var simulation = NotesApp.simulation()
        simulation.user("gives up what was refused") { device, _ in
            try await NotesApp.forget(device)
        }
        simulation.tolerated = Set(FaultKind.allCases)
        let summary = try await simulation.run(seeds: 1...3)
        #expect(summary.report.refused > 0)
    }

    @Test("what the app wants to hold is looked at on every device and at rest, and named")
    func ownChecks() async throws {
        var always = NotesApp.simulation()
        always.always("bodies are short") { context in
            let long = try context.rows("SELECT body FROM notes WHERE length(body) > 20")
            return long.first.map { "\($0)" }
        }
        let long = try SimulatedWorld(always, seed: 1)
        let first = await #expect(throws: SimulationFailure.self) { try await long.run() }
        #expect(first?.message.hasPrefix("“bodies are short” does not hold: device") == true)

        var rest = NotesApp.simulation()
        rest.atRest("nobody writes anything") { devices in
            try await devices[1].read {
                try $0.rows("SELECT 1 FROM notes WHERE body <> ''").isEmpty ? nil : "somebody did"
            }
        }
        let written = try SimulatedWorld(rest, seed: 1)
        let second = await #expect(throws: SimulationFailure.self) { try await written.run() }
        #expect(second?.message == "“nobody writes anything” does not hold: somebody did")
        #expect(second?.description.contains("MARTLET_REPLAY='{") == true)
    }

    @Test("a resolver that never ends is found")
    func restless() async throws {
        var simulation = NotesApp.simulation(steps: 80)
        simulation.resolver = { device in
            guard let set = try await device.parked().first else { return }
            try await device.write { context in
                for change in set.changes {
                    try context.update("notes", change.id, ["title": .text("\(set.identifier)")])
                    try context.insert("notes", ["title": "again", "body": ""])
                }
            }
        }
        var messages: Set<String> = []
        for seed in 1...6 as ClosedRange<UInt64> {
            do {
                try await SimulatedWorld(simulation, seed: seed).run()
            } catch let failure as SimulationFailure {
                messages.insert(failure.shape)
            }
        }
        #expect(messages == ["the resolver does not come to rest"])
    }

    @Test("a run that shows nothing says so")
    func idleSimulation() async throws {
        var failing = NotesApp.simulation(faults: .none)
        failing.user("breaks off") { _, _ in throw CancellationError() }
        let broken = failing
        let first = await #expect(throws: IdleSimulation.self) {
            try await broken.run(seeds: 1...2)
        }
        #expect(first?.description.contains("the deed “breaks off” failed each") == true)

        var plan = FaultPlan.none
        plan.clockJumps = 1
        var calm = NotesApp.simulation(steps: 10, faults: plan)
        let seldom = calm
        let second = await #expect(throws: IdleSimulation.self) {
            try await seldom.run(seeds: 1...1)
        }
        #expect(second?.description.contains("did not occur: clockJump.") == true)
        calm.tolerated = [.clockJump]
        #expect(try await calm.run(seeds: 1...1).missing == [.clockJump])

        var silent = Simulation("silent", schema: .sql(NotesApp.schema), faults: .none)
        silent.user("looks") { device, _ in try await device.read { _ in } }
        let looking = silent
        let third = await #expect(throws: IdleSimulation.self) {
            try await looking.run(seeds: 1...1)
        }
        #expect(third?.description.contains("nobody saved anything") == true)
    }

    @Test("every kind of fault occurs and is counted; in a world without faults none does")
    func faultsAreCounted() async throws {
        var plan = FaultPlan()
        for rate in FaultPlan.rates where FaultPlan.none[keyPath: rate.path] == 0 {
            plan[keyPath: rate.path] = max(15, plan[keyPath: rate.path])
        }
        (plan.shortestDelay, plan.bytesPerSecond) = (0, 500)
        plan.streamChanges = 100
        plan.streamCuts = 200
        plan.strayBatches = 200
        plan.snapshots = 100
        plan.spoiltSnapshots = 60
        var simulation = NotesApp.simulation(steps: 300, faults: plan)
        simulation.randomEdits()
        let all = try await simulation.run(seeds: 1...4)
        #expect(all.missing.isEmpty)
        simulation.faults = .none
        let none = try await simulation.run(seeds: 1...2)
        #expect(none.report.faults.isEmpty)
        #expect(FaultPlan.none.kinds.isEmpty)
    }
}
