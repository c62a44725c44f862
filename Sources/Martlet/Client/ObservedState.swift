internal import Synchronization

/// A value that changes, with its followers. Each follower sees the current value at once, and then
/// the newest; it misses the values that came and went while it was busy.
final class ObservedState<Value: Equatable & Sendable>: Sendable {
    private struct State {
        var value: Value
        var followers: [Int: AsyncStream<Value>.Continuation] = [:]
        var last = 0
        var isFinished = false
    }

    private let state: Mutex<State>

    init(_ value: Value) {
        state = Mutex(State(value: value))
    }

    /// The current value. Setting an equal value notifies no follower.
    var value: Value {
        get { state.withLock { $0.value } }
        set {
            state.withLock { state in
                guard state.value != newValue else { return }
                state.value = newValue
                // The lock is held, so that all followers see the same order; a stream never calls
                // back here.
                for follower in state.followers.values { follower.yield(newValue) }
            }
        }
    }

    func follow() -> AsyncStream<Value> {
        let (stream, follower) = AsyncStream<Value>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let number: Int? = state.withLock { state in
            follower.yield(state.value)
            guard !state.isFinished else { return nil }
            state.last += 1
            state.followers[state.last] = follower
            return state.last
        }
        guard let number else {
            follower.finish()
            return stream
        }
        follower.onTermination = { [weak self] _ in
            self?.state.withLock { _ = $0.followers.removeValue(forKey: number) }
        }
        return stream
    }

    /// Ends all sequences.
    func finish() {
        let followers = state.withLock { state in
            state.isFinished = true
            defer { state.followers.removeAll() }
            return Array(state.followers.values)
        }
        for follower in followers { follower.finish() }
    }
}
