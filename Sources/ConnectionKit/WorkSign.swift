internal import Synchronization

/// Says to one piece of work that it is not wanted any more, while it blocks.
final class WorkSign: Sendable {
    private enum State {
        case before
        case under(Wake)
        case cancelled
        case over
    }

    private let state = Mutex(State.before)

    /// Work begins that `wake` can end. Signals meant for earlier work are forgotten.
    /// - Returns: False when it was cancelled before it began.
    func begin(_ wake: Wake) -> Bool {
        state.withLock { state in
            guard case .before = state else { return false }
            wake.clear()
            state = .under(wake)
            return true
        }
    }

    /// Work is over: from now on `cancel` signals nobody.
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
