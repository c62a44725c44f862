import Synchronization

/// Counts what happened anywhere, and lets one wait until it has happened so often.
final class Milestones: Sendable {
    private struct State {
        var count = 0
        var waiting: [(target: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    var count: Int { state.withLock { $0.count } }

    func add(_ number: Int = 1) {
        let reached = state.withLock { state in
            state.count += number
            let count = state.count
            let reached = state.waiting.filter { $0.target <= count }
            state.waiting.removeAll { $0.target <= count }
            return reached
        }
        for waiting in reached { waiting.continuation.resume() }
    }

    func wait(for target: Int) async {
        await withCheckedContinuation { continuation in
            let isReached = state.withLock { state in
                if state.count >= target { return true }
                state.waiting.append((target, continuation))
                return false
            }
            if isReached { continuation.resume() }
        }
    }
}
