import RandomKit

/// A step of a device, with its time.
struct SoakStep: Hashable, Sendable {
    enum Deed: Hashable, Sendable {
        /// Saves. A connected device also waits until the server has judged the save.
        case save
        /// Exchanges, with nothing to send.
        case sync
        /// Stops exchanging and listening, and continues to save.
        case leave
        /// Exchanges and listens again.
        case comeBack
        /// Closes its file and opens it again.
        case reopen
    }

    /// The time from the start.
    let at: Duration
    /// The number of the device, counted from 0.
    let device: Int
    let deed: Deed
    /// The seed, which determines the save.
    let seed: UInt64
}

/// The steps of all devices, at a constant pace. A seed determines them.
///
/// A tenth of the devices is disconnected at any time, so that the number of connections stays the
/// same. No device reopens its file a second time before all others have. In the warm-up, all
/// connected devices save at the same moment a few times. Threads that were needed at once are
/// kept; if such a coincidence came later, it would look like growth.
struct SoakPlan: Sendable {
    let steps: [SoakStep]

    /// The interval at which another device leaves, and the one that was away the longest returns.
    private static let leaving = Duration.seconds(5)
    /// The interval at which a device closes its file and opens it again.
    private static let reopening = Duration.seconds(3)
    /// The number of saves for each exchange without a save.
    private static let savesForSync = 4.0
    /// The number of times that all devices save at once.
    private static let gatherings = 3

    /// - Parameters:
    ///   - devices: The number of devices, at least 2.
    ///   - warmUp: The part of the length that is not measured.
    ///   - saves: The number of saves of all devices together in a second.
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
            // A reopened file uses more memory than a new one. All files are reopened by the end of
            // the warm-up.
            let early = deed == .reopen ? min(every, warmUp / (devices * 2)) : every
            while at < length {
                moments.append((at, deed))
                at += at < warmUp ? early : every
            }
        }
        let gatherings = (1...Self.gatherings).map { warmUp * $0 / (Self.gatherings + 1) }
        // The sort keeps the order above for steps of the same moment.
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
        /// The connected devices, and the disconnected ones, the longest first.
        var here: [Int]
        var away: [Int] = []
        /// The order in which the devices reopen their files, the next one first.
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

        /// Makes all connected devices save.
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
