/// Computes the wait before the next try: exponential, with jitter, bounded.
///
/// Jitter spreads devices that failed together (Brooker, "Exponential Backoff And Jitter", 2015).
/// The first waits are spread over nearly the whole range. Later ones are spread over the upper two
/// thirds, so that devices do not ask a server that is away for long at short intervals.
package struct Backoff: Hashable, Sendable {
    /// Milliseconds; the ceiling of the first wait.
    package var first: Int64 = 500
    /// Milliseconds; the ceiling of every wait.
    package var longest: Int64 = 900_000

    /// Creates the default back-off.
    package init() {}

    /// Returns the wait after this number of failed tries in a row.
    /// - Parameters:
    ///   - failures: The number of tries that failed in a row, at least 1.
    ///   - random: Evenly spread bits.
    /// - Returns: Milliseconds between a quarter of `first` and the ceiling; after four failures,
    ///   between a third of the ceiling and the ceiling.
    package func wait(failures: Int, random: UInt64) -> Int64 {
        let doublings = min(max(failures - 1, 0), 20)
        let ceiling = min(longest, first << Int64(doublings))
        let floor = min(ceiling, failures > 4 ? ceiling / 3 : max(1, first / 4))
        let span = UInt64(ceiling - floor) + 1
        return floor + Int64(random % span)
    }

    /// Returns the wait that a server asks for, in milliseconds. It is at least 0 and at most a
    /// day, so that a number out of range neither overflows nor stops a device for good.
    /// - Parameter byServer: False if another program in the server's place asked for the wait,
    ///   which is then at most ten minutes.
    package static func milliseconds(
        askedFor seconds: Int64, byServer: Bool = true
    ) -> Int64 {
        min(max(0, seconds), byServer ? 86_400 : 600) * 1_000
    }
}
