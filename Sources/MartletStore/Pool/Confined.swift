internal import Dispatch

/// A value that is only ever touched on one serial queue, because what is done with it blocks.
///
/// `@unchecked Sendable`: `value` is read and written on `queue` alone.
package final class Confined<Value>: @unchecked Sendable {
    private let queue: DispatchQueue
    private var value: Value

    /// - Parameter value: Handed over; the caller keeps no way to it.
    package init(label: String, _ value: sending Value) {
        queue = DispatchQueue(label: label)
        self.value = value
    }

    /// Runs `body` on the queue, after what was asked before.
    package func run<Result: Sendable>(
        _ body: @escaping @Sendable (inout Value) throws -> Result
    ) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            queue.async {
                continuation.resume(with: Swift.Result { try body(&self.value) })
            }
        }
    }

    /// Runs `body` on the queue some time, and does not wait for it.
    package func post(_ body: @escaping @Sendable (inout Value) -> Void) {
        queue.async { body(&self.value) }
    }
}
