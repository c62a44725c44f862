/// How long to leave a server alone after each failure: twice as long as before, up to a limit, and
/// drawn anew each time so that those who lost it together do not come back together.
public struct Backoff: Hashable, Sendable {
    /// The longest wait after the first failure.
    public let first: Duration
    /// The longest wait of all.
    public let limit: Duration
    /// Failures since the last success.
    public private(set) var failures = 0

    public init(first: Duration = .milliseconds(50), limit: Duration = .seconds(5)) {
        precondition(first > .zero && limit >= first, "waits that grow")
        self.first = first
        self.limit = limit
    }

    /// Notes a failure.
    /// - Returns: How long to wait before the next try: between half of this step and all of it.
    public mutating func failed(using random: inout some RandomNumberGenerator) -> Duration {
        var step = first
        for _ in 0..<min(failures, 32) where step < limit { step *= 2 }
        step = min(step, limit)
        failures += 1
        // 53 bits are what a Double holds.
        let share = Double(random.next() >> 11) * 0x1p-53
        return step * (0.5 + share / 2)
    }

    /// Notes that the server answered: the next failure is a first one.
    public mutating func succeeded() {
        failures = 0
    }
}
