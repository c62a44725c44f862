/// Time and chance, as connections need them, from outside: tests pass their own.
public struct Pace: Sendable {
    /// A moment of a clock that never goes back.
    public let now: @Sendable () -> Duration
    /// Waits; throws when the waiting task is cancelled.
    public let sleep: @Sendable (Duration) async throws -> Void
    /// The numbers that waits are drawn from.
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

    /// The numbers as a generator.
    struct Generator: RandomNumberGenerator {
        let pace: Pace

        func next() -> UInt64 { pace.random() }
    }
}
