/// The clock and the randomness of connections. Tests pass their own.
public struct Pace: Sendable {
    /// Returns the time of a clock that never goes back.
    public let now: @Sendable () -> Duration
    /// Waits for a duration. It throws if the task is cancelled.
    public let sleep: @Sendable (Duration) async throws -> Void
    /// Returns random bits, for the waiting times.
    public let random: @Sendable () -> UInt64

    public init(
        now: @escaping @Sendable () -> Duration,
        sleep: @escaping @Sendable (Duration) async throws -> Void,
        random: @escaping @Sendable () -> UInt64
    ) {
        self.now = now
        self.sleep = sleep
        self.random = random
    }

    /// The system's clock and generator.
    public static let system: Pace = {
        let start = ContinuousClock.now
        return Pace(
            now: { ContinuousClock.now - start },
            sleep: { try await Task.sleep(for: $0) },
            random: {
                var generator = SystemRandomNumberGenerator()
                return generator.next()
            })
    }()

    /// The random bits as a generator.
    struct Generator: RandomNumberGenerator {
        let pace: Pace

        func next() -> UInt64 { pace.random() }
    }
}
