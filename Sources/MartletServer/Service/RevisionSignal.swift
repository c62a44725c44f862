internal import MartletProtocol
internal import Synchronization

/// Wakes those who wait for a data set to move on.
///
/// One timer serves all who wait, however many: it runs while anyone does, and looks once a second.
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
        var isTicking = false
        var isStopped = false
    }

    private let state: Mutex<State>

    init(_ revision: Revision) {
        state = Mutex(State(revision: revision))
    }

    /// How many wait now.
    var waiterCount: Int { state.withLock { $0.waiters.count } }

    /// The data set has reached a revision.
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

    /// The log is another one than it was, and shorter: everybody looks for himself.
    func restart(at revision: Revision) {
        let woken = state.withLock { state in
            state.revision = revision
            defer { state.waiters.removeAll() }
            return Array(state.waiters.values)
        }
        for waiter in woken { waiter.continuation.resume(returning: true) }
    }

    /// Waits until there is more than `revision`.
    /// - Returns: Whether there is; false after `duration` (to the second), when the waiting task
    ///   is cancelled, and when the server stops.
    func wait(beyond revision: Revision, for duration: Duration) async -> Bool {
        let number = state.withLock { state in
            state.last += 1
            return state.last
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (answer, startsTicking) = state.withLock { state -> (Bool?, Bool) in
                    if state.revision > revision { return (true, false) }
                    if state.isStopped || Task.isCancelled { return (false, false) }
                    state.waiters[number] = Waiter(
                        revision: revision, deadline: .now + duration, continuation: continuation)
                    defer { state.isTicking = true }
                    return (nil, !state.isTicking)
                }
                if let answer { continuation.resume(returning: answer) }
                if startsTicking { tick() }
            }
        } onCancel: {
            let waiter = state.withLock { $0.waiters.removeValue(forKey: number) }
            waiter?.continuation.resume(returning: false)
        }
    }

    /// Whether everyone was let go.
    var isStopped: Bool { state.withLock { $0.isStopped } }

    /// Lets everyone go.
    func stop() {
        let waiters = state.withLock { state in
            state.isStopped = true
            defer { state.waiters.removeAll() }
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.continuation.resume(returning: false) }
    }

    private func tick() {
        Task {
            while true {
                guard (try? await Task.sleep(for: .seconds(1))) != nil else { return }
                let now = ContinuousClock.now
                let (late, isDone) = state.withLock { state in
                    let late = state.waiters.filter { $0.value.deadline <= now }
                    for number in late.keys { state.waiters[number] = nil }
                    state.isTicking = !state.waiters.isEmpty
                    return (Array(late.values), state.waiters.isEmpty)
                }
                for waiter in late { waiter.continuation.resume(returning: false) }
                if isDone { return }
            }
        }
    }
}
