internal import MartletModel
internal import MartletProtocol
internal import Synchronization

/// Wakes the calls that wait for a data set's next revision.
///
/// One timer serves all waiting calls. It fires when the time of the first of them is up, and at
/// most once a second.
final class RevisionSignal: Sendable {
    private struct Waiter {
        let revision: Revision
        let deadline: ContinuousClock.Instant
        let continuation: CheckedContinuation<Bool, Never>
    }

    private struct State {
        var revision: Revision
        var waiters: [Int: Waiter] = [:]
        var last = 0
        /// The time of the next look for calls whose time is up; nil if none waits.
        var look: ContinuousClock.Instant?
        var isStopped = false
    }

    /// The shortest time between two looks.
    private static let pause = Duration.seconds(1)

    private let state: Mutex<State>

    init(_ revision: Revision) {
        state = Mutex(State(revision: revision))
    }

    /// The number of calls that wait now.
    var waiterCount: Int { state.withLock { $0.waiters.count } }

    /// Notes that the data set has reached a revision, and wakes the calls that wait for it.
    func advance(to revision: Revision) {
        let woken = state.withLock { state -> [Waiter] in
            guard revision > state.revision else { return [] }
            state.revision = revision
            let woken = state.waiters.filter { $0.value.revision < revision }
            for number in woken.keys { state.waiters[number] = nil }
            return Array(woken.values)
        }
        for waiter in woken { waiter.continuation.resume(returning: true) }
    }

    /// Notes that another, shorter log has replaced the former one, and wakes all calls.
    func restart(at revision: Revision) {
        let woken = state.withLock { state in
            state.revision = revision
            defer { state.waiters.removeAll() }
            return Array(state.waiters.values)
        }
        for waiter in woken { waiter.continuation.resume(returning: true) }
    }

    /// Waits until there is a revision after `revision`.
    ///
    /// - Returns: True if there is one. False after `duration` (to the second), if the waiting task
    ///   is cancelled, or if the server stops.
    func wait(beyond revision: Revision, for duration: Duration) async -> Bool {
        let number = state.withLock { state in
            state.last += 1
            return state.last
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let now = ContinuousClock.now
                let (answer, look) = state.withLock {
                    state -> (Bool?, ContinuousClock.Instant?) in
                    if state.revision > revision { return (true, nil) }
                    if state.isStopped || Task.isCancelled { return (false, nil) }
                    state.waiters[number] = Waiter(
                        revision: revision, deadline: now + duration, continuation: continuation)
                    let due = now + max(duration, Self.pause)
                    // The later look then finds that this one has replaced it.
                    guard state.look.map({ due < $0 }) ?? true else { return (nil, nil) }
                    state.look = due
                    return (nil, due)
                }
                if let answer { continuation.resume(returning: answer) }
                if let look { self.look(at: look) }
            }
        } onCancel: {
            let waiter = state.withLock { $0.waiters.removeValue(forKey: number) }
            waiter?.continuation.resume(returning: false)
        }
    }

    /// True if all calls were released for good.
    var isStopped: Bool { state.withLock { $0.isStopped } }

    /// Releases all calls, and lets none wait from now on.
    func stop() {
        let waiters = state.withLock { state in
            state.isStopped = true
            defer { state.waiters.removeAll() }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.continuation.resume(returning: false) }
    }

    /// Resumes the calls whose time is up, now and later, until none waits.
    private func look(at start: ContinuousClock.Instant) {
        Task {
            var due = start
            while true {
                guard (try? await Task.sleep(until: due, clock: .continuous)) != nil else { return }
                let now = ContinuousClock.now
                let (late, next) = state.withLock { [due] state in
                    guard state.look == due else {
                        return ([Waiter](), ContinuousClock.Instant?.none)
                    }
                    let late = state.waiters.filter { $0.value.deadline <= now }
                    for number in late.keys { state.waiters[number] = nil }
                    state.look = state.waiters.values.map(\.deadline).min()
                        .map { max($0, now + Self.pause) }
                    return (Array(late.values), state.look)
                }
                for waiter in late { waiter.continuation.resume(returning: false) }
                guard let next else { return }
                due = next
            }
        }
    }
}
