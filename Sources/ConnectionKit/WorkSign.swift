internal import Synchronization

/// Tells a piece of work that blocks that it was cancelled.
final class WorkSign: Sendable {
    private enum State {
        case before
        case under(Wake)
        case cancelled
        case over
    }

    private let state = Mutex(State.before)

    /// Begins a piece of work that `wake` can end, and forgets signals for earlier work.
    /// - Returns: False if the work was cancelled before it began.
    func begin(_ wake: Wake) -> Bool {
        state.withLock { state in
            guard case .before = state else { return false }
            wake.clear()
            state = .under(wake)
            return true
        }
    }

    /// Ends the work. Later calls of `cancel` signal nothing.
    func end() {
        state.withLock { $0 = .over }
    }

    func cancel() {
        state.withLock { state in
            if case .under(let wake) = state { wake.signal() }
            if case .over = state { return }
            state = .cancelled
        }
    }
}
