internal import Synchronization

/// What a process asked of Redis, and what came of it. Shared by all its connections.
package final class CacheCounters: Sendable {
    /// Numbers since the process began.
    package struct Counts: Hashable, Sendable {
        /// Blocks that came from Redis and were good.
        package var hits = 0
        /// Blocks that were not there.
        package var misses = 0
        /// Blocks that were there and could not be used: damaged, forged, of another history.
        package var rejected = 0
        /// Blocks put there.
        package var stored = 0
        /// Notices published.
        package var notices = 0
        /// Times Redis did not answer, or refused.
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
