import Martlet
import MartletDevice
import MartletModel
import Synchronization

/// A way to the server whose requests stay where they are, even if they are cancelled, as long as it is held.
final class LooseTransport: LiveTransport {
    private struct State {
        var isHeld = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let way: URLSessionTransport
    private let state = Mutex(State())

    init(_ way: URLSessionTransport) {
        self.way = way
    }

    func exchange(_ body: [UInt8]) async throws(TransportFailure) -> TransportAnswer {
        try await exchange(body, progress: {})
    }

    func exchange(
        _ body: [UInt8], progress: @escaping @Sendable () -> Void
    ) async throws(TransportFailure) -> TransportAnswer {
        await pass()
        let answer = try await way.exchange(body, progress: progress)
        await pass()
        return answer
    }

    func deltas(
        _ cursor: DeltaCursor, receive: @escaping @Sendable (LiveEvent) async -> Void
    ) async throws(TransportFailure) {
        await pass()
        try await way.deltas(cursor, receive: receive)
    }

    func hold() { state.withLock { $0.isHeld = true } }

    func letGo() {
        let waiting = state.withLock { state in
            state.isHeld = false
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    private func pass() async {
        await withCheckedContinuation { continuation in
            let goesOn = state.withLock { state in
                if state.isHeld { state.waiting.append(continuation) }
                return !state.isHeld
            }
            if goesOn { continuation.resume() }
        }
    }
}
