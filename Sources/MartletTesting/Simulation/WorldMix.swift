internal import MartletServerCore

/// The kinds of people and networks in a world of Martlet's own simulation.
struct WorldMix {
    enum People: CaseIterable {
        /// They change the same records.
        case together
        /// Each changes only own records, so that no save may be refused.
        case apart
        /// One person saves, and all others only read.
        case alone
    }

    private enum Network: CaseIterable {
        case asPlanned, prompt, late, clinic, hotel, train
    }

    var people = People.together
    private var network = Network.asPlanned
    /// The maximum time between two saves of one person, in milliseconds.
    var longestPause = 8_200

    /// The part of a request that the server processes at a time.
    var share = SetMeasure.Share()

    init() {}

    /// - Parameter mayBeApart: Whether people can tell their own records from those of other
    ///   people.
    init(using random: inout SeededRandom, mayBeApart: Bool) {
        let roll = random.below(100)
        people = roll < 60 ? .together : roll < 85 && mayBeApart ? .apart : .alone
        network = Network.allCases[random.below(Network.allCases.count)]
        longestPause = [8_200, 8_200, 8_200, 2_000, 300][random.below(5)]
        // A separate generator leaves the rest of a world as its seed determines it.
        var apart = random
        if apart.below(3) == 0 {
            // With this limit a few records are much work, so that small worlds also postpone parts
            // of a request.
            share.mostSteps = 40_000
            share.largeSet = 1 + apart.below(3)
            share.mostFollowed = apart.below(2)
        }
    }

    /// Returns a plan with this network in place of its own. A plan without faults does not change.
    func network(of plan: FaultPlan) -> FaultPlan {
        guard plan.longestDelay > FaultPlan.none.longestDelay else { return plan }
        var line = FaultPlan.none
        switch network {
        case .asPlanned: return plan
        case .prompt: line.longestDelay = 1
        case .late: (line.shortestDelay, line.longestDelay) = (2_000, 5_000)
        case .clinic: line = .clinic
        case .hotel: line = .hotel
        case .train: line = .train
        }
        var plan = plan
        plan.shortestDelay = line.shortestDelay
        plan.longestDelay = line.longestDelay
        plan.bytesPerSecond = line.bytesPerSecond
        plan.portals = max(plan.portals, line.portals)
        plan.strangeAnswers = max(plan.strangeAnswers, line.strangeAnswers)
        plan.mixedAnswers = max(plan.mixedAnswers, line.mixedAnswers)
        return plan
    }

    /// Returns whether a person saves on a device.
    func saves(_ device: Int) -> Bool {
        people != .alone || device == 0
    }
}
