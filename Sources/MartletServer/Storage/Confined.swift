internal import Dispatch

/// A value that lives on a serial queue of its own, where its calls may block.
///
/// SQLite blocks, and the cooperative pool belongs to handlers; so each connection has a queue,
/// and callers wait for it without holding a thread.
final class Confined<Value>: @unchecked Sendable {
    /// Protects `value`.
    let queue: DispatchQueue
    private var value: Value?

    /// - Parameter make: Makes the value, on the queue.
    init(label: String, _ make: @escaping @Sendable () throws -> Value) async throws {
        queue = DispatchQueue(label: label)
        try await withCheckedThrowingContinuation {
            (continuation: CheckedContinuation<Void, any Error>) in
            queue.async {
                continuation.resume(with: Result { self.value = try make() })
            }
        }
    }

    /// Runs `body` on the queue, after everything asked for before.
    /// - Throws: `ConfinedValueIsGone` after `end`, and what `body` throws.
    func run<Answer: Sendable>(
        _ body: @escaping @Sendable (inout Value) throws -> Answer
    ) async throws -> Answer {
        try await withCheckedThrowingContinuation { continuation in
            queue.async {
                continuation.resume(with: Result { try self.here(body) })
            }
        }
    }

    /// Runs `body` at once, for a caller that is on the queue already.
    func here<Answer>(_ body: (inout Value) throws -> Answer) throws -> Answer {
        dispatchPrecondition(condition: .onQueue(queue))
        guard var value = value.take() else { throw ConfinedValueIsGone() }
        defer { self.value = value }
        return try body(&value)
    }

    /// Lets go of the value, on the queue, after everything asked for before.
    func end() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            queue.async {
                self.value = nil
                continuation.resume()
            }
        }
    }
}

/// The server is stopping; what was asked for came too late.
struct ConfinedValueIsGone: Error, Hashable, Sendable {}
