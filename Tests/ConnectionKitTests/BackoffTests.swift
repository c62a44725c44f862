import ConnectionKit
import Testing

@Suite("Back-off")
struct BackoffTests {
    /// Gives the same number again and again.
    private struct Constant: RandomNumberGenerator {
        let number: UInt64
        func next() -> UInt64 { number }
    }

    @Test("doubles up to its limit, and begins anew after a success")
    func doubling() {
        var backoff = Backoff(first: .milliseconds(100), limit: .seconds(1))
        var lowest = Constant(number: 0)
        let waits = (0..<6).map { _ in backoff.failed(using: &lowest) }
        #expect(
            waits == [
                .milliseconds(50), .milliseconds(100), .milliseconds(200), .milliseconds(400),
                .milliseconds(500), .milliseconds(500),
            ])
        #expect(backoff.failures == 6)
        backoff.succeeded()
        #expect(backoff.failed(using: &lowest) == .milliseconds(50))
    }

    @Test("draws each wait between half a step and all of it")
    func jitter() {
        var generator = SystemRandomNumberGenerator()
        var waits: Set<Duration> = []
        for _ in 0..<100 {
            var backoff = Backoff(first: .seconds(2), limit: .seconds(60))
            let wait = backoff.failed(using: &generator)
            #expect(wait >= .seconds(1) && wait <= .seconds(2))
            waits.insert(wait)
        }
        #expect(waits.count > 50)
    }

    @Test("never waits longer than its limit, however often it failed")
    func limitOfWaits() {
        var backoff = Backoff(first: .seconds(1), limit: .seconds(8))
        var highest = Constant(number: .max)
        for _ in 0..<10_000 { #expect(backoff.failed(using: &highest) <= .seconds(8)) }
    }
}
