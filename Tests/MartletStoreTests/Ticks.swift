/// Sleeps that end when the test says so.
actor Ticks {
    private var sleeper: CheckedContinuation<Void, any Error>?
    private var waiters: [CheckedContinuation<Void, Never>] = []
    private var cancelWaiters: [CheckedContinuation<Void, Never>] = []
    private var isCancelled = false
    /// How long the last sleeper wanted to sleep.
    private(set) var asked: Duration?

    func sleep(_ duration: Duration) async throws {
        asked = duration
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation {
                (continuation: CheckedContinuation<Void, any Error>) in
                guard !isCancelled else {
                    continuation.resume(throwing: CancellationError())
                    return
                }
                sleeper = continuation
                for waiter in waiters { waiter.resume() }
                waiters = []
            }
        } onCancel: {
            Task { await cancel() }
        }
    }

    /// Ends the sleep there is, or the next one.
    func tick() async {
        if sleeper == nil { await withCheckedContinuation { waiters.append($0) } }
        sleeper?.resume()
        sleeper = nil
    }

    /// Returns once the sleeper was cancelled.
    func untilCancelled() async {
        if !isCancelled { await withCheckedContinuation { cancelWaiters.append($0) } }
    }

    private func cancel() {
        isCancelled = true
        sleeper?.resume(throwing: CancellationError())
        sleeper = nil
        for waiter in cancelWaiters { waiter.resume() }
        cancelWaiters = []
    }
}
