import MartletModel
import MartletProtocol
import Synchronization

/// Notes the times at which change sets were sent and committed, and at which each device showed
/// them.
///
/// The meter learns of a commit from the server's answer, before the demo's network may lose it. It
/// measures from the moment at which the request was sent. The commit itself was later, so the
/// times are upper bounds.
final class LiveMeter: Sendable {
    private struct State {
        var isOn = false
        /// For each revision, the time and the author of the request whose answer first had it.
        var commits: [Revision: (sent: ContinuousClock.Instant, author: Int)] = [:]
        /// For each device, the revisions that it reached, in ascending order.
        var reached: [Int: [(revision: Revision, at: ContinuousClock.Instant)]] = [:]
    }

    private let state = Mutex(State())

    var isOn: Bool { state.withLock { $0.isOn } }

    func setOn(_ isOn: Bool) {
        state.withLock { $0.isOn = isOn }
    }

    /// The newest revision that was noted.
    var newest: Revision { state.withLock { $0.commits.keys.max() ?? 0 } }

    /// Notes an answer to a request that `author` sent at an instant.
    func answered(_ body: [UInt8], sent: ContinuousClock.Instant, author: Int) {
        guard isOn, let answer = try? SyncCoder.decodeAnswer(body) else { return }
        state.withLock { state in
            for set in answer.changeSets where set.identifier != nil && set.conflict == false {
                // A repeated answer does not show the time of the change.
                guard let revision = set.revision, state.commits[revision] == nil else { continue }
                state.commits[revision] = (sent, author)
            }
        }
    }

    /// Notes that a device shows everything up to a revision.
    func reached(_ revision: Revision, device: Int, at instant: ContinuousClock.Instant) {
        state.withLock { state in
            guard state.isOn else { return }
            state.reached[device, default: []].append((revision, instant))
        }
    }

    /// Returns the times from sending to showing, of each commit on each device except its
    /// author's.
    ///
    /// For a device that never showed a commit, the time until `end` counts.
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

/// The time in which changes reach listening devices.
public struct LiveFigures: Hashable, Sendable {
    /// The number of changes, and the number of times that another device showed one.
    public var changes = 0
    public var sights = 0
    public var median = Duration.zero
    public var percentile99 = Duration.zero
    public var worst = Duration.zero
    /// The share that took at most a second, from 0 to 1.
    public var withinSecond = 1.0
    /// The number of live connections that the demo's network cut.
    public var cuts = 0

    /// The share within a second below which the demo fails. A cut connection is opened again after
    /// up to half a second, and one in twenty attempts fails. Changes that are sent meanwhile are
    /// late.
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
