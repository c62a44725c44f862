internal import Synchronization

/// The counts of a process's requests to Redis and of their results. All its connections share
/// them.
package final class CacheCounters: Sendable {
    /// The counts since the process began.
    package struct Counts: Hashable, Sendable {
        /// Blocks that Redis had and that were valid.
        package var hits = 0
        /// Blocks that Redis did not have.
        package var misses = 0
        /// Blocks that Redis had and that could not be used: damaged, forged, or of another
        /// history.
        package var rejected = 0
        /// Blocks stored in Redis.
        package var stored = 0
        /// Notices published.
        package var notices = 0
        /// The number of times that Redis did not answer, or refused a command.
        package var failures = 0

        package init() {}
    }

    private let counts = Mutex(Counts())

    package init() {}

    package var current: Counts { counts.withLock { $0 } }

    func count(_ change: (inout Counts) -> Void) {
        counts.withLock { change(&$0) }
    }
}
