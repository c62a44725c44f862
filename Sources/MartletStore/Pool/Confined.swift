internal import Dispatch
internal import SystemKit

/// A value that is only ever touched on one serial queue, because what is done with it blocks.
///
/// `@unchecked Sendable`: `value` is read and written on the queue of `calls` alone.
package final class Confined<Value>: @unchecked Sendable {
    private let calls: CallQueue
    private var value: Value

    /// - Parameter value: Handed over; the caller keeps no way to it.
    package init(label: String, _ value: sending Value) {
        calls = CallQueue(label: label)
        calls.queue.setSpecific(key: QueueMark.key, value: true)
        self.value = value
    }

    /// Runs `body` on the queue, after what was asked before.
    package func run<Result: Sendable>(
        _ body: @escaping @Sendable (inout Value) throws -> Result
    ) async throws -> Result {
        try await calls.run { try body(&self.value) }
    }

    /// Runs `body` on the queue, after what was asked before, unless the task is cancelled until
    /// then; `body` sees by the sign when the task is cancelled later.
    /// - Throws: `StoreError` `.cancelled`; what `body` throws.
    package func runUnlessCancelled<Result: Sendable>(
        _ body: @escaping @Sendable (inout Value, StopSign) throws -> Result
    ) async throws -> Result {
        let sign = StopSign()
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
        try QueueMark.refuseNesting()
        return try calls.queue.sync { try body(&value) }
    }

    /// Runs `body` on the queue some time, and does not wait for it.
    package func post(_ body: @escaping @Sendable (inout Value) -> Void) {
        calls.queue.async { body(&self.value) }
    }
}

/// What tells the queues of confined values from all others.
enum QueueMark {
    static let key = DispatchSpecificKey<Bool>()

    static func refuseNesting() throws {
        guard DispatchQueue.getSpecific(key: key) == nil else {
            throw StoreError(
                .misuse,
                "A closure that reads or writes waits for another one of a database, which could"
                    + " block for ever. Use the context the closure was given, or call it after"
                    + " the closure has ended.")
        }
    }
}
