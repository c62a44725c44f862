/// Makes a world that breaks a promise smaller, as long as it breaks the same one.
///
/// Any reduction changes all later random decisions, so a smaller world is another world. It counts
/// if its failure has the same shape. A few seeds are tried for each size.
struct Shrinker {
    private static let longest = 150
    private static let seedsOfEachSize: UInt64 = 3

    private let simulation: Simulation
    private let origin: Extent
    private let shape: String
    private var best: Extent
    private var attempts = 0

    init(_ simulation: Simulation, _ failure: SimulationFailure, _ extent: Extent) {
        self.simulation = simulation
        origin = extent
        best = extent
        shape = failure.shape
    }

    /// Shrinks the world.
    /// - Returns: The failure of the smallest world found.
    mutating func run() async throws -> FoundFailure {
        try await cutSteps()
        try await leaveOutDevices()
        try await leaveOutFaults()
        try await cutSteps()
        try await leaveOutDeeds()
        try await cutSteps()
        try await leaveOutFaults()
        return try await found(best.plan)
    }

    /// Runs the smallest world once more, and records all its events.
    private func found(_ plan: WorldPlan) async throws -> FoundFailure {
        let world = try SimulatedWorld(simulation, plan: plan, isRecorded: true)
        do {
            try await world.run()
        } catch let failure as SimulationFailure {
            return try await FoundFailure(failure, in: world, shrunkFrom: origin)
        }
        // Code under test that reads a clock or its own random source breaks a promise only now and
        // then.
        let failure = SimulationFailure(
            seed: plan.seed, step: 0,
            message:
                "“\(shape)” was found, and not again in the same world: what the app does hangs"
                + " on something beside the device and the user that it is given",
            replay: plan.command)
        return try await FoundFailure(failure, in: world, shrunkFrom: origin)
    }

    /// Accepts a smaller world if it fails in the same way.
    /// - Returns: Whether it was accepted.
    private mutating func take(_ plan: WorldPlan, seeds: UInt64 = 1) async throws -> Bool {
        for offset in 0..<seeds where attempts < Self.longest {
            attempts += 1
            var candidate = plan
            candidate.seed = plan.seed &+ offset
            let world = try SimulatedWorld(simulation, plan: candidate)
            do {
                try await world.run()
            } catch let failure as SimulationFailure where failure.shape == shape {
                best = await world.extent()
                return true
            } catch is SimulationFailure {}
        }
        return false
    }

    /// The smallest world so far, with more steps, because a world that is smaller otherwise may
    /// take longer to fail.
    private var roomy: WorldPlan {
        var plan = best.plan
        plan.steps = min(origin.plan.steps, max(60, best.plan.steps * 3))
        return plan
    }

    private mutating func cutSteps() async throws {
        var steps = min(best.plan.steps, best.steps)
        while steps > 0 {
            var plan = best.plan
            plan.steps = steps
            if plan != best.plan {
                guard try await take(plan) else { break }
            }
            steps = min(steps * 3 / 4, best.steps)
        }
    }

    private mutating func leaveOutDevices() async throws {
        // An app's checks may name two devices.
        for devices in 2..<max(3, best.plan.devices) {
            var plan = roomy
            plan.devices = devices
            if devices < best.plan.devices,
                try await take(plan, seeds: Self.seedsOfEachSize)
            {
                return
            }
        }
    }

    private mutating func leaveOutFaults() async throws {
        var plan = roomy
        plan.faults = .none
        if best.plan.faults != .none, try await take(plan, seeds: Self.seedsOfEachSize) {
            return try await cutSteps()
        }
        for rate in FaultPlan.rates {
            var plan = best.plan
            plan.faults[keyPath: rate.path] = FaultPlan.none[keyPath: rate.path]
            if plan != best.plan { _ = try await take(plan) }
        }
    }

    /// Leaves deeds out: halves first, then quarters, down to single ones.
    private mutating func leaveOutDeeds() async throws {
        var size = max(1, best.performed.count / 2)
        while true {
            var start = 0
            while start < best.performed.count {
                let some = best.performed[start..<min(start + size, best.performed.count)]
                var plan = best.plan
                plan.without.formUnion(some)
                // After an accepted cut, the remaining deeds have moved up to this position.
                if !(try await take(plan)) { start += size }
            }
            guard size > 1 else { return }
            size /= 2
        }
    }
}
