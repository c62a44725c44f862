package import SystemKit

extension Confined {
    /// Runs `body` on the queue, after earlier calls, unless the task is cancelled before then. The
    /// flag that `body` receives shows a later cancellation.
    /// - Throws: `StoreError` `.cancelled`, and the error of `body`.
    package func runUnlessCancelled<Result: Sendable>(
        _ body: @escaping @Sendable (inout Value, CancellationFlag) throws -> Result
    ) async throws -> Result {
        let sign = CancellationFlag()
        return try await withTaskCancellationHandler {
            try await run { value in
                try sign.check()
                return try body(&value, sign)
            }
        } onCancel: {
            sign.set()
        }
    }

    /// Runs `body` on the queue, after earlier calls, and blocks the thread until it has ended.
    /// - Throws: `StoreError` `.misuse` on the queue of any confined value, because two calls that
    ///   wait for each other would wait for ever.
    package func runBlocking<Result>(_ body: (inout Value) throws -> Result) throws -> Result {
        try ConfinedQueue.refuseNesting()
        return try wait(body)
    }
}

extension ConfinedQueue {
    /// Refuses to wait on the queue of a confined value.
    /// - Throws: `StoreError` `.misuse`.
    static func refuseNesting() throws {
        guard !isCurrent else {
            throw StoreError(
                .misuse,
                "A closure that reads or writes waits for another one of a database, which could"
                    + " block for ever. Use the context the closure was given, or call it after"
                    + " the closure has ended.")
        }
    }
}
