package import SystemKit

extension Confined {
    /// Runs `body` on the queue, after what was asked before, unless the task is cancelled until
    /// then; `body` sees by the sign when the task is cancelled later.
    /// - Throws: `StoreError` `.cancelled`; what `body` throws.
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

    /// Runs `body` on the queue, after what was asked before, and blocks the thread until it has
    /// ended.
    /// - Throws: `StoreError` `.misuse` on the queue of any confined value: two that wait for each
    ///   other would wait for ever.
    package func runBlocking<Result>(_ body: (inout Value) throws -> Result) throws -> Result {
        try ConfinedQueue.refuseNesting()
        return try wait(body)
    }
}

extension ConfinedQueue {
    /// - Throws: `StoreError` `.misuse` on the queue of a confined value.
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
