/// A broken promise in the smallest world that was found to break it: its description says which one,
/// what happened in that world, and how to run it again.
public struct FoundFailure: Error, CustomStringConvertible {
    /// The promise, as the smallest world broke it.
    public let failure: SimulationFailure
    /// The smallest world.
    public let plan: WorldPlan
    /// What happened in it, a line for each event.
    public let journal: [String]
    /// The world as it was when the promise was found broken.
    public let world: WorldText
    private let origin: Extent?
    private let deeds: Int

    /// - Parameter origin: The world that broke the promise first; nil where none was shrunk.
    init(_ failure: SimulationFailure, in world: SimulatedWorld, shrunkFrom origin: Extent?)
        async throws
    {
        self.failure = failure
        plan = world.plan
        journal = await world.journal()
        self.world = try await world.text()
        deeds = await world.performed.count
        self.origin = origin
    }

    public var description: String {
        var lines = ["Simulation “\(plan.simulation)”, seed \(plan.seed): \(failure.message)", ""]
        if let origin {
            lines.append(
                "Shrunk from seed \(origin.plan.seed) with \(origin.plan.devices) devices,"
                    + " \(origin.plan.steps) steps, \(origin.performed.count) deeds to"
                    + " \(plan.devices) devices, \(plan.steps) steps, \(deeds) deeds.")
        }
        let rates = FaultPlan.rates.filter {
            plan.faults[keyPath: $0.path] != FaultPlan.none[keyPath: $0.path]
        }
        .map { "\($0.name) \(plan.faults[keyPath: $0.path])" }
        lines.append("Faults: \(rates.isEmpty ? "none" : rates.joined(separator: ", "))")
        lines += ["", "What happened:"] + journal
        lines += ["", "The world then:"] + world.lines.map { "  " + $0 }
        lines += ["", "Run it again:", "  \(plan.command)"]
        return lines.joined(separator: "\n")
    }
}

/// How large a world was when it broke a promise.
struct Extent: Sendable {
    let plan: WorldPlan
    /// Numbers of the deeds that were done.
    let performed: [Int]
    /// Events delivered.
    let steps: Int
}

extension SimulatedWorld {
    func extent() -> Extent {
        Extent(plan: plan, performed: performed, steps: steps)
    }
}
