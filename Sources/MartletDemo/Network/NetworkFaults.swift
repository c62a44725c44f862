import RandomKit
import Synchronization

/// The faults of the demo's network, which one seed determines, and their counts.
///
/// All devices share it: its lock protects the generator and the counts.
final class NetworkFaults: Sendable {
    enum Fate: Hashable {
        case carried
        /// The request never reaches the server.
        case requestLost
        /// The server processes the request, and its answer is lost.
        case answerLost
    }

    struct Counts: Hashable, Sendable {
        var exchanges = 0
        var requestsLost = 0
        var answersLost = 0
        /// The number of exchanges that failed because the server was down.
        var failures = 0
        /// The number of live connections and downloads that were cut.
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
    ///   - lostAnswers: The percentage of answers that are lost after the server has processed the
    ///     request.
    ///   - lostRequests: The percentage of requests that never arrive.
    ///   - cutStreams: The number of batches in a thousand in whose place a live connection is cut.
    init(seed: UInt64, lostAnswers: Int, lostRequests: Int, cutStreams: Int) {
        state = Mutex(State(random: SplitMix64(seed: seed)))
        self.lostAnswers = lostAnswers
        self.lostRequests = lostRequests
        self.cutStreams = cutStreams
    }

    var counts: Counts { state.withLock(\.counts) }

    /// Draws the outcome of the next exchange.
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
