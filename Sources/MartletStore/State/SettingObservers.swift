internal import Synchronization

/// Wakes the observers of settings.
///
/// One wake is kept for a busy observer; it stands for all changes meanwhile.
final class SettingObservers: Sendable {
    private struct Observer {
        let name: String
        let wake: AsyncStream<Void>.Continuation
    }

    private struct State {
        var observers: [Int: Observer] = [:]
        var last = 0
        var isFinished = false
        var onDemand: (@Sendable (Bool) -> Void)?
    }

    private let state = Mutex(State())

    /// Sets the handler that is called when the first observer arrives and when the last one
    /// leaves. The calls come in that order, and one at a time. The handler must not call this
    /// object.
    func onDemand(_ handler: @escaping @Sendable (Bool) -> Void) {
        state.withLock { $0.onDemand = handler }
    }

    /// Returns a stream that wakes when the setting may have changed, and ends when observation is
    /// ended.
    func wakes(for name: String) -> AsyncStream<Void> {
        let (stream, wake) = AsyncStream.makeStream(
            of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state -> Int? in
            guard !state.isFinished else { return nil }
            state.last += 1
            state.observers[state.last] = Observer(name: name, wake: wake)
            if state.observers.count == 1 { state.onDemand?(true) }
            return state.last
        }
        if let number {
            wake.onTermination = { [weak self] _ in self?.remove(number) }
        } else {
            wake.finish()
        }
        return stream
    }

    /// Wakes the observers of a setting, or all observers if `name` is nil.
    func wake(_ name: String?) {
        let woken = state.withLock { state in
            state.observers.values.filter { name == nil || $0.name == name }
        }
        for observer in woken { observer.wake.yield() }
    }

    /// Ends all observation permanently.
    func finish() {
        let ended = state.withLock { state in
            state.isFinished = true
            return Array(state.observers.values)
        }
        for observer in ended { observer.wake.finish() }
    }

    private func remove(_ number: Int) {
        state.withLock { state in
            guard state.observers.removeValue(forKey: number) != nil, state.observers.isEmpty
            else { return }
            state.onDemand?(false)
        }
    }
}
