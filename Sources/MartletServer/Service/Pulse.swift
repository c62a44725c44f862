internal import Dispatch
internal import Synchronization

/// Beats ten times a second for watchers that have a cheap check. They share one timer, which
/// stops when there are no watchers.
final class Pulse: Sendable {
    private struct State {
        var listeners: [Int: @Sendable () -> Void] = [:]
        var last = 0
        var isBeating = false
    }

    private let queue = DispatchQueue(label: "martlet.pulse")
    private let state = Mutex(State())

    /// Calls `beat` at each beat, on the pulse's queue. `beat` must not block.
    /// - Returns: The number to pass to `remove`.
    func add(_ beat: @escaping @Sendable () -> Void) -> Int {
        let (number, isFirst) = state.withLock { state in
            state.last += 1
            state.listeners[state.last] = beat
            defer { state.isBeating = true }
            return (state.last, !state.isBeating)
        }
        if isFirst { schedule() }
        return number
    }

    func remove(_ number: Int) {
        state.withLock { $0.listeners[number] = nil }
    }

    private func schedule() {
        queue.asyncAfter(deadline: .now() + Watcher.interval) { self.beat() }
    }

    private func beat() {
        let listeners = state.withLock { state in
            state.isBeating = !state.listeners.isEmpty
            return Array(state.listeners.values)
        }
        for listener in listeners { listener() }
        if !listeners.isEmpty { schedule() }
    }
}
