internal import Synchronization

/// Leaves a storage alone for a while that took long to fail: as long again as it took.
///
/// A database that refuses connections says so at once and is asked every time; one that is not
/// reached at all would hold up every request for as long as a connection may take.
final class FailureCooldown: Sendable {
    private let end = Mutex<ContinuousClock.Instant?>(nil)

    var isOn: Bool {
        end.withLock { $0.map { ContinuousClock.now < $0 } ?? false }
    }

    /// It has failed, after so long.
    func begin(after duration: Duration) {
        end.withLock { $0 = .now + min(duration, .seconds(5)) }
    }
}
