import Waiting

/// Sleeps that end when the test says so.
actor Ticks {
    private var sleeper: CheckedContinuation<Void, any Error>?
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
            }
        } onCancel: {
            Task { await cancel() }
        }
    }

    /// Returns once somebody sleeps.
    func untilAsleep() async throws {
        try await waitUntil("somebody sleeps") { sleeper != nil }
    }

    /// Ends the sleep there is, or the next one.
    func tick() async throws {
        try await untilAsleep()
        sleeper?.resume()
        sleeper = nil
    }

    /// Returns once the sleeper was cancelled.
    func untilCancelled() async throws {
        try await waitUntil("the sleeper was cancelled") { isCancelled }
    }

    private func cancel() {
        isCancelled = true
        sleeper?.resume(throwing: CancellationError())
        sleeper = nil
    }
}
