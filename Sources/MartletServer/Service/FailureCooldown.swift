internal import Synchronization

/// Lets a storage that took long to fail rest for as long as it took, at most five seconds.
///
/// A database that refuses connections says so at once, and is asked every time. One that cannot be
/// reached would delay every request for as long as a connection may take.
final class FailureCooldown: Sendable {
    private let end = Mutex<ContinuousClock.Instant?>(nil)

    var isOn: Bool {
        end.withLock { $0.map { ContinuousClock.now < $0 } ?? false }
    }

    /// Notes a failure that took `duration`.
    func begin(after duration: Duration) {
        end.withLock { $0 = .now + min(duration, .seconds(5)) }
    }
}
