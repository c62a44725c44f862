/// A broken promise in the smallest world that was found to break it. The description names the
/// promise, lists the events in that world, and says how to run it again.
public struct FoundFailure: Error, CustomStringConvertible {
    /// The promise, as it was broken in the smallest world.
    public let failure: SimulationFailure
    /// The smallest world.
    public let plan: WorldPlan
    /// The events in it, one a line.
    public let journal: [String]
    /// The world at the time at which the promise was found broken.
    public let world: WorldText
    private let origin: Extent?
    private let deeds: Int

    /// Creates an error for a world that has failed.
    /// - Parameter origin: The world that broke the promise first; nil if it was not shrunk.
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

/// The size of a world that broke a promise.
struct Extent: Sendable {
    let plan: WorldPlan
    /// The numbers of the deeds that were done.
    let performed: [Int]
    /// The number of events delivered.
    let steps: Int
}

extension SimulatedWorld {
    func extent() -> Extent {
        Extent(plan: plan, performed: performed, steps: steps)
    }
}
