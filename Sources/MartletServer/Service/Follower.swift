internal import Dispatch
internal import MartletModel
internal import MartletServerCore
internal import Synchronization

/// Looks for writes to a data set by other processes and programs, ten times a second and when it
/// is woken.
///
/// If a cheap check shows that nothing was written, it looks every five seconds only. After a
/// failure it looks less often, down to every two seconds, and reports that once.
final class Follower: Sendable {
    struct Work: Sendable {
        /// Looks, and updates memory to the stored state. It runs on the follower's queue and may
        /// block.
        var look: @Sendable () throws -> StorageLook
        /// Returns, at little cost, whether a look would find nothing new. Nil if there is no such
        /// check.
        var isQuiet: (@Sendable () -> Bool)?
        /// Called after each look that worked.
        var found: @Sendable (StorageLook) -> Void
        /// Called when looking begins to fail (with the reason), or works again (nil).
        var report: @Sendable (_ reason: String?) -> Void
    }

    private struct State {
        var isStopped = false
        /// True if a requested look is on its way.
        var isAsked = false
        var failures = 0
        /// The number of beats since the last look.
        var beats = 0
        /// The number under which the pulse has the follower.
        var pulse: Int?
        /// True if a look has worked.
        var hasLooked = false
        /// The time of the last look that worked, or check that made one unnecessary; at first,
        /// when the data set was opened.
        var seen = ContinuousClock.now
    }

    /// The time between two looks.
    static let interval = DispatchTimeInterval.milliseconds(100)
    /// The time between two looks for notices, which arrive in swarms.
    private static let shortest = DispatchTimeInterval.milliseconds(2)
    private static let longestPause = 2_000

    private let queue: DispatchQueue
    /// The number of beats after which the follower looks even if nothing seems written.
    private static let mostBeats = 50
    private let work: Work
    private let pulse: Pulse
    private let state = Mutex(State())

    /// Makes a follower, which `start()` sets to work.
    ///
    /// - Parameters:
    ///   - queue: A serial queue of the follower's own.
    ///   - pulse: The timer that many followers share for their cheap checks.
    init(queue: DispatchQueue, pulse: Pulse, work: Work) {
        self.queue = queue
        self.pulse = pulse
        self.work = work
    }

    func start() {
        guard let isQuiet = work.isQuiet else { return queue.async { self.tick() } }
        queue.async { self.look() }
        let number = pulse.add { [weak self] in self?.beat(isQuiet) }
        state.withLock { $0.pulse = number }
    }

    /// Looks if there may be a write, or if the last look was long ago.
    private func beat(_ isQuiet: @Sendable () -> Bool) {
        let failures = state.withLock { state in
            state.beats += 1
            return state.failures
        }
        if failures == 0, isQuiet() {
            let isLongAgo = state.withLock { state in
                if state.hasLooked { state.seen = .now }
                return state.beats >= Self.mostBeats
            }
            guard isLongAgo else { return }
        }
        let isFirst = state.withLock { state in
            // After failures it looks less often.
            let pause = min(Self.longestPause / 100, 1 << min(failures, 6))
            guard !state.isStopped, !state.isAsked, state.beats >= (failures == 0 ? 1 : pause)
            else { return false }
            state.isAsked = true
            return true
        }
        if isFirst { queue.async { self.look() } }
    }

    /// Asks for a look, because there may be something new.
    func wake() {
        let isFirst = state.withLock { state in
            guard !state.isStopped, !state.isAsked else { return false }
            state.isAsked = true
            return true
        }
        guard isFirst else { return }
        queue.asyncAfter(deadline: .now() + Self.shortest) { self.look() }
    }

    /// Ends the looks. One that is under way finishes.
    func stop() {
        let number = state.withLock { state in
            state.isStopped = true
            return state.pulse
        }
        if let number { pulse.remove(number) }
    }

    /// The time since a look last worked, or a check made one unnecessary; before the first look,
    /// the time since the data set was opened.
    var age: Duration { ContinuousClock.now - state.withLock { $0.seen } }

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
            state.beats = 0
            return !state.isStopped
        }
        guard isWanted else { return }
        do {
            let look = try work.look()
            let hadFailed = state.withLock { state in
                defer { state.failures = 0 }
                state.hasLooked = true
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
