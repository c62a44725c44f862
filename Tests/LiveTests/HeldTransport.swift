import Martlet
import Synchronization

/// A transport whose request does not end, even if it is cancelled, until the test says so.
final class HeldTransport: Transport {
    private struct State {
        var asked = false
        var isOpen = false
        var waiting: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())
    let ended = Mutex(false)

    var isAsked: Bool { state.withLock { $0.asked } }

    func exchange(_ body: [UInt8]) async throws(TransportFailure) -> TransportAnswer {
        await withCheckedContinuation { continuation in
            let goesOn = state.withLock { state in
                state.asked = true
                if !state.isOpen { state.waiting = continuation }
                return state.isOpen
            }
            if goesOn { continuation.resume() }
        }
        ended.withLock { $0 = true }
        throw TransportFailure(message: "The way was closed.")
    }

    func letGo() {
        let waiting = state.withLock { state in
            state.isOpen = true
            return state.waiting.take()
        }
        waiting?.resume()
    }
}
