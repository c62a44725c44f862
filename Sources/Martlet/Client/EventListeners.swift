internal import Synchronization

/// The streams that receive a client's events.
final class EventListeners: Sendable {
    private struct State {
        var continuations: [Int: AsyncStream<ClientEvent>.Continuation] = [:]
        var last = 0
        var isFinished = false
    }

    private let state = Mutex(State())
    /// The number of events kept for a listener that does not keep up.
    private static let buffered = 1_024

    func add() -> AsyncStream<ClientEvent> {
        let (stream, continuation) = AsyncStream<ClientEvent>.makeStream(
            bufferingPolicy: .bufferingNewest(Self.buffered))
        let number: Int? = state.withLock { state in
            guard !state.isFinished else { return nil }
            state.last += 1
            state.continuations[state.last] = continuation
            return state.last
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { $0.continuations[number] = nil }
        }
        return stream
    }

    func publish(_ event: ClientEvent) {
        let continuations = state.withLock { Array($0.continuations.values) }
        for continuation in continuations { continuation.yield(event) }
    }

    func finish() {
        let continuations = state.withLock { state in
            state.isFinished = true
            return Array(state.continuations.values)
        }
        for continuation in continuations { continuation.finish() }
    }
}
