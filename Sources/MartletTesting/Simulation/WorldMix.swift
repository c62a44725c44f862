internal import MartletServerCore

/// How people and networks are in a world of the simulation's own.
struct WorldMix {
    enum People: CaseIterable {
        /// They meet at the same records.
        case together
        /// Each works on records of their own, so that nothing of theirs may be refused.
        case apart
        /// One works, and all others look on.
        case alone
    }

    private enum Network: CaseIterable {
        case asPlanned, prompt, late, clinic, hotel, train
    }

    var people = People.together
    private var network = Network.asPlanned
    /// Milliseconds between two saves of one person, at most.
    var longestPause = 8_200

    /// How much of a request the server does at a time.
    var share = SetMeasure.Share()

    init() {}

    /// - Parameter mayBeApart: Whether people can tell their own records from others'.
    init(using random: inout SeededRandom, mayBeApart: Bool) {
        let roll = random.below(100)
        people = roll < 60 ? .together : roll < 85 && mayBeApart ? .apart : .alone
        network = Network.allCases[random.below(Network.allCases.count)]
        longestPause = [8_200, 8_200, 8_200, 2_000, 300][random.below(5)]
        // Draws of its own leave all else of a world as its seed has it.
        var apart = random
        if apart.below(3) == 0 {
            // A few records are much work, so what is put off comes up in small worlds, too.
            share.mostSteps = 40_000
            share.largeSet = 1 + apart.below(3)
            share.mostFollowed = apart.below(2)
        }
    }

    /// Returns a plan with this network in place of its own; a plan without faults as it is.
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

    /// Returns whether somebody saves on a device.
    func saves(_ device: Int) -> Bool {
        people != .alone || device == 0
    }
}
