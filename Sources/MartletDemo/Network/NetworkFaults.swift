import RandomKit
import Synchronization

/// What the demo's network does to exchanges, from one seed, and what it has done.
///
/// All devices share it: its lock protects the generator and the counts.
final class NetworkFaults: Sendable {
    enum Fate: Hashable {
        case carried
        /// The request never reaches the server.
        case requestLost
        /// The server works, and its answer is lost.
        case answerLost
    }

    struct Counts: Hashable, Sendable {
        var exchanges = 0
        var requestsLost = 0
        var answersLost = 0
        /// Exchanges that failed by themselves: the server was away.
        var failures = 0
        /// Live connections and downloads that were cut.
        var streamsCut = 0
    }

    private struct State {
        var random: SplitMix64
        var counts = Counts()
    }

    private let state: Mutex<State>
    private let lostAnswers: Int
    private let lostRequests: Int
    private let cutStreams: Int

    /// - Parameters:
    ///   - lostAnswers: Percent of the answers that are lost after the server worked.
    ///   - lostRequests: Percent of the requests that never arrive.
    ///   - cutStreams: Permille of the batches in whose place a live connection is cut.
    init(seed: UInt64, lostAnswers: Int, lostRequests: Int, cutStreams: Int) {
        state = Mutex(State(random: SplitMix64(seed: seed)))
        self.lostAnswers = lostAnswers
        self.lostRequests = lostRequests
        self.cutStreams = cutStreams
    }

    var counts: Counts { state.withLock(\.counts) }

    /// Draws the fate of the next exchange.
    func next() -> Fate {
        state.withLock { state in
            state.counts.exchanges += 1
            let drawn = Int.random(in: 0..<100, using: &state.random)
            if drawn < lostAnswers {
                state.counts.answersLost += 1
                return .answerLost
            }
            if drawn < lostAnswers + lostRequests {
                state.counts.requestsLost += 1
                return .requestLost
            }
            return .carried
        }
    }

    /// Draws whether a live connection is cut now.
    func cutsStream() -> Bool {
        state.withLock { state in
            guard Int.random(in: 0..<1_000, using: &state.random) < cutStreams else { return false }
            state.counts.streamsCut += 1
            return true
        }
    }

    func countFailure() {
        state.withLock { $0.counts.failures += 1 }
    }
}
