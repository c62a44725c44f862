import Synchronization

/// The times that the deeds of a soak took, from the moment at which they were due.
final class SoakMeter: Sendable {
    /// One deed that was measured.
    struct Time: Hashable, Sendable {
        /// The time at which it was due, from the end of the warm-up; negative before that.
        let at: Duration
        let took: Duration
    }

    private struct State {
        var times: [SoakStep.Deed: [Time]] = [:]
        var failures = 0
    }

    private let state = Mutex(State())

    func note(_ deed: SoakStep.Deed, at: Duration, took: Duration) {
        state.withLock { $0.times[deed, default: []].append(Time(at: at, took: took)) }
    }

    /// Notes exchanges that failed and were tried again.
    func failed(_ times: Int) {
        state.withLock { $0.failures += times }
    }

    var failures: Int { state.withLock(\.failures) }

    /// Returns the times of all deeds of a kind, including those of the warm-up.
    func times(_ deed: SoakStep.Deed) -> [Time] {
        state.withLock { $0.times[deed] ?? [] }
    }
}

/// The times of a part of a soak.
public struct SoakPart: Hashable, Sendable {
    public let count: Int
    public let median: Duration
    public let percentile99: Duration

    /// Returns ten parts of the same length, in order. Deeds that were due before 0 or after the
    /// end are left out.
    static func tenths(_ times: [SoakMeter.Time], of length: Duration) -> [SoakPart] {
        var parts = Array(repeating: [Duration](), count: 10)
        for time in times where time.at >= .zero && time.at < length {
            parts[min(9, Int(time.at / length * 10))].append(time.took)
        }
        return parts.map { SoakPart($0) }
    }

    init(_ times: [Duration]) {
        let sorted = times.sorted()
        count = sorted.count
        median = sorted.isEmpty ? .zero : sorted.percentile(50)
        percentile99 = sorted.isEmpty ? .zero : sorted.percentile(99)
    }
}
