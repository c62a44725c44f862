internal import Dispatch
internal import MartletProtocol
internal import MartletServerCore
internal import Synchronization

/// Looks, ten times a second and whenever it is told to, for what others wrote to a data set.
///
/// After a failure it looks less often, down to every two seconds, and says so once.
final class Follower: Sendable {
    struct Work: Sendable {
        /// Looks, and brings memory up to what is stored; on the follower's queue, may block.
        var look: @Sendable () throws -> StorageLook
        /// There is something new, or other programs' changes wait to be taken.
        var found: @Sendable (StorageLook) -> Void
        /// Looking has begun to fail (the reason), or works again (nil).
        var report: @Sendable (_ reason: String?) -> Void
    }

    private struct State {
        var isStopped = false
        /// Whether a look is on its way that somebody asked for.
        var isAsked = false
        var failures = 0
        /// When it last worked.
        var seen: ContinuousClock.Instant?
    }

    /// The time between two looks.
    static let interval = DispatchTimeInterval.milliseconds(100)
    /// Notices come in swarms; between two looks for their sake there is so much time.
    private static let shortest = DispatchTimeInterval.milliseconds(2)
    private static let longestPause = 2_000

    private let queue: DispatchQueue
    private let work: Work
    private let state = Mutex(State())

    /// - Parameter queue: A serial queue of its own.
    init(queue: DispatchQueue, work: Work) {
        self.queue = queue
        self.work = work
    }

    func start() {
        queue.async { self.tick() }
    }

    /// There may be something new.
    func wake() {
        let isFirst = state.withLock { state in
            guard !state.isStopped, !state.isAsked else { return false }
            state.isAsked = true
            return true
        }
        guard isFirst else { return }
        queue.asyncAfter(deadline: .now() + Self.shortest) { self.look() }
    }

    /// Looks no more; what is under way ends by itself.
    func stop() {
        state.withLock { $0.isStopped = true }
    }

    /// How long ago a look last worked; nil before the first.
    var age: Duration? {
        state.withLock { $0.seen }.map { ContinuousClock.now - $0 }
    }

    // MARK: - On the queue

    private func tick() {
        guard !state.withLock({ $0.isStopped }) else { return }
        look()
        let failures = state.withLock { $0.failures }
        let pause = min(Self.longestPause, 100 << min(failures, 6))
        let next = failures == 0 ? Self.interval : .milliseconds(pause)
        queue.asyncAfter(deadline: .now() + next) { self.tick() }
    }

    private func look() {
        let isWanted = state.withLock { state in
            state.isAsked = false
            return !state.isStopped
        }
        guard isWanted else { return }
        do {
            let look = try work.look()
            let hadFailed = state.withLock { state in
                defer { state.failures = 0 }
                state.seen = .now
                return state.failures > 0
            }
            if hadFailed { work.report(nil) }
            work.found(look)
        } catch {
            let isFirst = state.withLock { state in
                state.failures += 1
                return state.failures == 1
            }
            if isFirst { work.report(String(describing: error)) }
        }
    }
}
