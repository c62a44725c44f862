internal import Dispatch
internal import Foundation
internal import SystemKit

/// A value that lives on a serial queue of its own, where its calls may block.
///
/// SQLite blocks, and the cooperative pool belongs to handlers; so each connection has a queue,
/// and callers wait for it without holding a thread. Only `atOnce` does without.
final class Confined<Value>: @unchecked Sendable {
    private let calls: CallQueue
    /// Held by whoever uses the value: a lock that the Thread Sanitizer sees.
    private let use = NSLock()
    private var value: Value?

    /// - Parameter make: Makes the value, on the queue.
    init(label: String, _ make: @escaping @Sendable () throws -> Value) async throws {
        calls = CallQueue(label: label)
        try await calls.run {
            let made = try make()
            self.use.withLock { self.value = made }
        }
    }

    /// Protects `value`.
    var queue: DispatchQueue { calls.queue }

    /// Runs `body` on the queue, after everything asked for before.
    /// - Throws: `ConfinedValueIsGone` after `end`, and what `body` throws.
    func run<Answer: Sendable>(
        _ body: @escaping @Sendable (inout Value) throws -> Answer
    ) async throws -> Answer {
        try await calls.run { try self.here(body) }
    }

    /// Runs `body` at once, for a caller that is on the queue already.
    func here<Answer>(_ body: (inout Value) throws -> Answer) throws -> Answer {
        dispatchPrecondition(condition: .onQueue(queue))
        use.lock()
        defer { use.unlock() }
        return try inUse(body)
    }

    /// Runs `body` on the caller's thread if nobody is using the value just now; for what takes a moment
    /// and waits for nothing, where changing threads would cost more than the work.
    /// - Returns: What it gave; nil where somebody is using the value.
    func atOnce<Answer>(_ body: (inout Value) throws -> Answer) throws -> Answer? {
        guard use.try() else { return nil }
        defer { use.unlock() }
        return try inUse(body)
    }

    private func inUse<Answer>(_ body: (inout Value) throws -> Answer) throws -> Answer {
        guard var value = value.take() else { throw ConfinedValueIsGone() }
        defer { self.value = value }
        return try body(&value)
    }

    /// Runs `body` on the queue, after everything asked for before, and blocks the caller until then;
    /// for other queues whose calls may block.
    func wait<Answer>(_ body: (inout Value) throws -> Answer) throws -> Answer {
        dispatchPrecondition(condition: .notOnQueue(queue))
        return try queue.sync { try here(body) }
    }

    /// Lets go of the value, on the queue, after everything asked for before.
    func end() async {
        await calls.run { self.use.withLock { self.value = nil } }
    }
}

/// The server is stopping; what was asked for came too late.
struct ConfinedValueIsGone: Error, Hashable, Sendable {}
