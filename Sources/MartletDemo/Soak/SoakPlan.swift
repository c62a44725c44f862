import RandomKit

/// One thing that a device is to do, and when.
struct SoakStep: Hashable, Sendable {
    enum Deed: Hashable, Sendable {
        /// Saves, and where it is connected sees to it that the server has judged it.
        case save
        /// Exchanges, with nothing to send.
        case sync
        /// Stops exchanging and listening, and goes on saving.
        case leave
        /// Exchanges and listens again.
        case comeBack
        /// Closes its file and opens it again.
        case reopen
    }

    /// From the start.
    let at: Duration
    /// Counted from 0.
    let device: Int
    let deed: Deed
    /// Decides what is saved.
    let seed: UInt64
}

/// What all devices do and when: at one pace from the beginning to the end, decided by a seed.
///
/// A tenth of the devices is away at any time, so that the number of connections stays the same; and
/// none opens its file anew a second time before the others did. In the warm-up all that are connected save
/// in the same moment, a few times: threads that were needed at once are kept, and what chance would bring
/// together some time later would look like growth.
struct SoakPlan: Sendable {
    let steps: [SoakStep]

    /// Another device leaves, and the one that was away the longest comes back.
    private static let leaving = Duration.seconds(5)
    /// A device closes its file and opens it again.
    private static let reopening = Duration.seconds(3)
    /// For so many saves a device exchanges without any.
    private static let savesForSync = 4.0
    /// How many times all save at once.
    private static let gatherings = 3

    /// - Parameters:
    ///   - devices: At least 2.
    ///   - warmUp: What of the length is not measured.
    ///   - saves: Of all devices together, each second.
    init(seed: UInt64, devices: Int, warmUp: Duration, length: Duration, saves: Double) {
        var drawing = Drawing(seed: seed, devices: devices)
        let pace = Duration.seconds(1) / saves
        let due: [(deed: SoakStep.Deed, every: Duration, first: Duration)] = [
            (.save, pace, .zero), (.sync, pace * Self.savesForSync, pace / 2),
            (.leave, Self.leaving, Self.leaving), (.reopen, Self.reopening, Self.reopening / 2),
        ]
        var moments: [(at: Duration, deed: SoakStep.Deed)] = []
        for (deed, every, first) in due {
            var at = first
            // A file that was opened again holds more than one that was begun: all have been by the end of the
            // warm-up.
            let early = deed == .reopen ? min(every, warmUp / (devices * 2)) : every
            while at < length {
                moments.append((at, deed))
                at += at < warmUp ? early : every
            }
        }
        let gatherings = (1...Self.gatherings).map { warmUp * $0 / (Self.gatherings + 1) }
        // Those of the same moment in the order above: a sort keeps it.
        moments.sort { $0.at < $1.at }
        for _ in 0..<drawing.awayAtOnce { drawing.leave(.zero) }
        var gathered = 0
        for moment in moments {
            while gathered < gatherings.count, gatherings[gathered] <= moment.at {
                drawing.gather(gatherings[gathered])
                gathered += 1
            }
            drawing.draw(moment.deed, moment.at)
        }
        steps = drawing.steps
    }

    private struct Drawing {
        var random: SplitMix64
        var steps: [SoakStep] = []
        /// Those who are connected, and those who are away, the longest first.
        var here: [Int]
        var away: [Int] = []
        /// In which order they open their files anew: the next one first.
        var closing: [Int]
        let awayAtOnce: Int

        init(seed: UInt64, devices: Int) {
            random = SplitMix64(seed: seed)
            here = Array(0..<devices)
            closing = here.shuffled(using: &random)
            awayAtOnce = max(1, devices / 10)
        }

        mutating func draw(_ deed: SoakStep.Deed, _ at: Duration) {
            switch deed {
            case .save: add(.save, (here + away).randomElement(using: &random), at)
            case .sync: add(.sync, here.randomElement(using: &random), at)
            case .reopen:
                guard let next = closing.firstIndex(where: { here.contains($0) }) else { return }
                let device = closing.remove(at: next)
                closing.append(device)
                add(.reopen, device, at)
            case .leave: leave(at)
            case .comeBack: break
            }
        }

        /// Who is connected saves.
        mutating func gather(_ at: Duration) {
            for device in here { add(.save, device, at) }
        }

        mutating func leave(_ at: Duration) {
            let index = Int.random(in: here.indices, using: &random)
            let leaving = here.remove(at: index)
            away.append(leaving)
            add(.leave, leaving, at)
            if away.count > awayAtOnce {
                let back = away.removeFirst()
                here.append(back)
                add(.comeBack, back, at)
            }
        }

        private mutating func add(_ deed: SoakStep.Deed, _ device: Int?, _ at: Duration) {
            guard let device else { return }
            steps.append(SoakStep(at: at, device: device, deed: deed, seed: random.next()))
        }
    }
}
