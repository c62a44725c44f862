internal import Foundation

extension Simulation {
    /// Runs one world after another.
    ///
    /// The first world that breaks a promise ends the run. It is made smaller as long as it breaks
    /// the same promise, and thrown as an error, with its events and the command that runs it
    /// again. With that command's environment variable, only that world is run.
    /// - Parameter seeds: The seeds, one for each world.
    /// - Returns: A summary of all worlds.
    /// - Throws: `FoundFailure` for a broken promise; `IdleSimulation` if the run shows nothing: no
    ///   user saved anything, a deed never ended well, or a kind of fault did not occur although
    ///   the plan asks for it; `StoreError` for a schema that cannot be used.
    @discardableResult
    public func run(seeds: ClosedRange<UInt64>) async throws -> SimulationSummary {
        try await run(seeds: seeds, environment: ProcessInfo.processInfo.environment)
    }

    /// Runs the worlds.
    /// - Parameter environment: May hold the plan of one world to run instead of all others.
    func run(
        seeds: ClosedRange<UInt64>, environment: [String: String]
    ) async throws -> SimulationSummary {
        var simulation = self
        simulation.serverScript = try SimulatedApp.serverScript(schema, rules: rules)
        simulation.nextServerScript = try nextVersion.map {
            try SimulatedApp.serverScript($0, rules: rules)
        }
        return try await simulation.runWorlds(seeds, environment)
    }

    private func runWorlds(
        _ seeds: ClosedRange<UInt64>, _ environment: [String: String]
    ) async throws -> SimulationSummary {
        if let plan = try WorldPlan.replayed(name, environment: environment) {
            return try await replay(plan)
        }
        var summary = SimulationSummary(plan: faults)
        for seed in seeds {
            let world = try SimulatedWorld(self, seed: seed)
            do {
                try await world.run()
            } catch let failure as SimulationFailure {
                var shrinker = Shrinker(self, failure, await world.extent())
                throw try await shrinker.run()
            }
            await summary.add(world)
        }
        try check(summary)
        return summary
    }

    /// Runs one reported world, without shrinking it.
    private func replay(_ plan: WorldPlan) async throws -> SimulationSummary {
        let world = try SimulatedWorld(self, plan: plan, isRecorded: true)
        do {
            try await world.run()
        } catch let failure as SimulationFailure {
            throw try await FoundFailure(failure, in: world, shrunkFrom: nil)
        }
        var summary = SimulationSummary(plan: plan.faults)
        await summary.add(world)
        return summary
    }

    /// Checks that something could have gone wrong, because a run in which nothing could proves
    /// nothing.
    private func check(_ summary: SimulationSummary) throws {
        guard !deeds.isEmpty else { return }
        if summary.report.saves == 0 {
            throw IdleSimulation("Simulation “\(name)”: nobody saved anything. \(summary)")
        }
        for (deed, count) in summary.deeds.sorted(by: { $0.key < $1.key })
        where count.done == 0 && count.thrown > 0 {
            throw IdleSimulation(
                "Simulation “\(name)”: the deed “\(deed)” failed each of the \(count.thrown)"
                    + " times, the last time with: \(count.error)")
        }
        let missing = summary.missing.filter { !tolerated.contains($0) }
        guard missing.isEmpty else {
            let kinds = missing.map(\.rawValue).joined(separator: ", ")
            throw IdleSimulation(
                "Simulation “\(name)”: the plan asks for what did not occur: \(kinds). Run more"
                    + " seeds or steps, raise the rates, or put the kinds into `tolerated`."
                    + " \(summary)")
        }
    }
}

/// A summary of all worlds of a run.
public struct SimulationSummary: Sendable, CustomStringConvertible {
    /// The number of worlds.
    public private(set) var worlds = 0
    /// The sums over all worlds; `trace` is a hash over their traces, in order.
    public private(set) var report = SimulationReport()
    private(set) var deeds: [String: DeedCount] = [:]
    private let plan: FaultPlan

    init(plan: FaultPlan) {
        self.plan = plan
    }

    mutating func add(_ world: SimulatedWorld) async {
        worlds += 1
        report.add(await world.report)
        for (deed, count) in await world.outcomes { deeds[deed, default: DeedCount()].add(count) }
    }

    /// The kinds of faults that the plan asks for and that occurred in no world.
    public var missing: [FaultKind] { report.missing(of: plan) }

    /// The counts in a few lines.
    public var description: String {
        var lines = [
            "\(worlds) worlds, \(report.steps) steps, \(report.saves) saves, \(report.accepted)"
                + " accepted, \(report.refused) refused"
        ]
        for (deed, count) in deeds.sorted(by: { $0.key < $1.key }) {
            lines.append(
                "somebody \(deed): \(count.done) times"
                    + (count.thrown == 0 ? "" : ", and \(count.thrown) times it failed"))
        }
        let counts = FaultKind.allCases.compactMap { kind in
            report.faults[kind].map { "\(kind.rawValue) \($0)" }
        }
        if !counts.isEmpty { lines.append("faults: \(counts.joined(separator: ", "))") }
        if !missing.isEmpty {
            lines.append("did not occur: \(missing.map(\.rawValue).joined(separator: ", "))")
        }
        return lines.joined(separator: "\n")
    }
}

/// The error of a run that shows nothing; the description says why.
public struct IdleSimulation: Error, CustomStringConvertible {
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}
