/// The waiting time after each failure of a server. It doubles up to a limit. A random part spreads
/// the attempts, so that clients that lost the server together do not return together.
public struct Backoff: Hashable, Sendable {
    /// The longest wait after the first failure.
    public let first: Duration
    /// The longest wait of all.
    public let limit: Duration
    /// The number of failures since the last success.
    public private(set) var failures = 0

    public init(first: Duration = .milliseconds(50), limit: Duration = .seconds(5)) {
        precondition(first > .zero && limit >= first, "waits that grow")
        self.first = first
        self.limit = limit
    }

    /// Notes a failure.
    /// - Returns: The time to wait before the next attempt: between half of this step and all of
    ///   it.
    public mutating func failed(using random: inout some RandomNumberGenerator) -> Duration {
        var step = first
        for _ in 0..<min(failures, 32) where step < limit { step *= 2 }
        step = min(step, limit)
        failures += 1
        // A Double holds 53 bits.
        let share = Double(random.next() >> 11) * 0x1p-53
        return step * (0.5 + share / 2)
    }

    /// Notes a success. The next failure counts as the first.
    public mutating func succeeded() {
        failures = 0
    }
}
