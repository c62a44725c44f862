import Synchronization

/// Sleeps that last until the test ends them, one at a time.
final class HeldSleeps: Sendable {
    private struct State {
        var sleeper: CheckedContinuation<Void, any Error>?
        var watcher: CheckedContinuation<Void, Never>?
        /// Whether the next sleep ends at once.
        var isReleased = false
    }

    private let state = Mutex(State())

    func sleep(_ duration: Duration) async throws {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation {
                (continuation: CheckedContinuation<Void, any Error>) in
                let (watcher, isNow) = state.withLock { state in
                    if state.isReleased {
                        state.isReleased = false
                        return (CheckedContinuation<Void, Never>?.none, true)
                    }
                    defer { state.watcher = nil }
                    state.sleeper = continuation
                    return (state.watcher, false)
                }
                watcher?.resume()
                if isNow { continuation.resume() }
            }
        } onCancel: {
            let sleeper = state.withLock { state in
                defer { state.sleeper = nil }
                return state.sleeper
            }
            sleeper?.resume(throwing: CancellationError())
        }
    }

    /// Ends the sleep there is, or the next, and returns once the sleeper sleeps again: what it
    /// did in between is under way then.
    func pass() async {
        await withCheckedContinuation { watcher in
            let sleeper = state.withLock { state in
                state.watcher = watcher
                state.isReleased = state.sleeper == nil
                defer { state.sleeper = nil }
                return state.sleeper
            }
            sleeper?.resume()
        }
    }
}
