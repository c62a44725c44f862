import MartletModel
import MartletProtocol
import Synchronization

/// Notes when a change set was sent and committed, and when each device showed it.
///
/// A commit is known by the server's answer, before the demo's network may lose it. It is counted
/// from the moment its request was sent: the commit itself came later, so the times are upper
/// bounds.
final class LiveMeter: Sendable {
    private struct State {
        var isOn = false
        /// By revision: when the request was sent that was first answered with it, and by whom.
        var commits: [Revision: (sent: ContinuousClock.Instant, author: Int)] = [:]
        /// By device: revisions as they were reached, ascending.
        var reached: [Int: [(revision: Revision, at: ContinuousClock.Instant)]] = [:]
    }

    private let state = Mutex(State())

    var isOn: Bool { state.withLock { $0.isOn } }

    func setOn(_ isOn: Bool) {
        state.withLock { $0.isOn = isOn }
    }

    /// The newest commit noted.
    var newest: Revision { state.withLock { $0.commits.keys.max() ?? 0 } }

    /// An answer came to a request of `author`'s sent at an instant.
    func answered(_ body: [UInt8], sent: ContinuousClock.Instant, author: Int) {
        guard isOn, let answer = try? SyncCoder.decodeAnswer(body) else { return }
        state.withLock { state in
            for set in answer.changeSets where set.identifier != nil && set.conflict == false {
                // An answer that is given again says nothing of when the change was made.
                guard let revision = set.revision, state.commits[revision] == nil else { continue }
                state.commits[revision] = (sent, author)
            }
        }
    }

    /// A device shows everything up to a revision.
    func reached(_ revision: Revision, device: Int, at instant: ContinuousClock.Instant) {
        state.withLock { state in
            guard state.isOn else { return }
            state.reached[device, default: []].append((revision, instant))
        }
    }

    /// The times from sending to showing, of each commit on each device but its author's.
    ///
    /// A device that never showed a commit counts with the time until `end`.
    func figures(devices: [Int], end: ContinuousClock.Instant) -> LiveFigures {
        state.withLock { state in
            var times: [Duration] = []
            for (revision, commit) in state.commits {
                for device in devices where device != commit.author {
                    let shown = state.reached[device]?.first { $0.revision >= revision }
                    times.append(max(.zero, (shown?.at ?? end) - commit.sent))
                }
            }
            return LiveFigures(times, changes: state.commits.count)
        }
    }
}

/// How fast changes were seen by those who listen.
public struct LiveFigures: Hashable, Sendable {
    /// Changes, and how often one was seen by a device that had not made it.
    public var changes = 0
    public var sights = 0
    public var median = Duration.zero
    public var percentile99 = Duration.zero
    public var worst = Duration.zero
    /// The share that took a second at most, 0 to 1.
    public var withinSecond = 1.0
    /// Live connections that the demo's network cut.
    public var cuts = 0

    /// The share within a second below which the demo fails. A cut connection is opened again after
    /// up to half a second, and one in twenty openings fails; what is sent meanwhile is late.
    public static let leastWithinSecond = 0.95

    public init() {}

    init(_ times: [Duration], changes: Int) {
        self.changes = changes
        sights = times.count
        guard !times.isEmpty else { return }
        let sorted = times.sorted()
        median = sorted.percentile(50)
        percentile99 = sorted.percentile(99)
        worst = sorted[sorted.count - 1]
        let soon = sorted.count { $0 <= .seconds(1) }
        withinSecond = Double(soon) / Double(sorted.count)
    }
}
