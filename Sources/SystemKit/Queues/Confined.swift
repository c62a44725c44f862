public import Dispatch
internal import Foundation

/// A value on a serial queue of its own, where its calls may block.
///
/// SQLite and files block, and the threads of tasks must not. Therefore callers wait for the queue without holding a
/// thread. Only `atOnce` uses the value on the caller's thread.
///
/// `@unchecked Sendable`: `value` is read and written under the lock alone.
public final class Confined<Value>: @unchecked Sendable {
    private let calls: CallQueue
    /// Held by the user of the value: a lock that the Thread Sanitizer sees.
    private let use = NSLock()
    private var value: Value?

    private init(label: String) {
        calls = CallQueue(label: label)
        calls.queue.setSpecific(key: ConfinedQueue.mark, value: true)
    }

    /// - Parameter value: The value. The caller keeps no reference to it.
    public convenience init(label: String, _ value: sending Value) {
        self.init(label: label)
        self.value = value
    }

    /// Creates a value on its queue.
    /// - Throws: The error of `make`.
    public static func making(
        label: String, _ make: @escaping @Sendable () throws -> Value
    ) async throws -> Confined {
        let confined = Confined(label: label)
        try await confined.calls.run {
            let made = try make()
            confined.use.withLock { confined.value = made }
        }
        return confined
    }

    /// The queue of the value's calls.
    public var queue: DispatchQueue { calls.queue }

    /// Runs `body` on the queue, after all earlier calls.
    /// - Throws: `OwnerStopped` after `end`, and the error of `body`.
    public func run<Answer: Sendable>(
        _ body: @escaping @Sendable (inout Value) throws -> Answer
    ) async throws -> Answer {
        try await calls.run { try self.here(body) }
    }

    /// Runs `body` at once. The caller must be on the queue already.
    /// - Throws: `OwnerStopped` after `end`, and the error of `body`.
    public func here<Answer>(_ body: (inout Value) throws -> Answer) throws -> Answer {
        dispatchPrecondition(condition: .onQueue(queue))
        use.lock()
        defer { use.unlock() }
        return try inUse(body)
    }

    /// Runs `body` on the caller's thread if no other call uses the value now. This is for short
    /// work that waits for nothing, if changing threads would cost more than the work.
    /// - Returns: The result of `body`; nil if another call uses the value.
    /// - Throws: `OwnerStopped` after `end`, and the error of `body`.
    public func atOnce<Answer>(_ body: (inout Value) throws -> Answer) throws -> Answer? {
        guard use.try() else { return nil }
        defer { use.unlock() }
        return try inUse(body)
    }

    private func inUse<Answer>(_ body: (inout Value) throws -> Answer) throws -> Answer {
        guard var value = value.take() else { throw OwnerStopped() }
        defer { self.value = value }
        return try body(&value)
    }

    /// Runs `body` on the queue, after all earlier calls, and blocks the caller until then;
    /// for other queues whose calls may block.
    /// - Throws: `OwnerStopped` after `end`, and the error of `body`.
    public func wait<Answer>(_ body: (inout Value) throws -> Answer) throws -> Answer {
        dispatchPrecondition(condition: .notOnQueue(queue))
        return try queue.sync { try here(body) }
    }

    /// Runs `body` on the queue later, and does not wait for it. After `end` it does nothing.
    public func post(_ body: @escaping @Sendable (inout Value) -> Void) {
        queue.async { try? self.here(body) }
    }

    /// Releases the value on the queue, after all earlier calls.
    public func end() async {
        await calls.run { self.use.withLock { self.value = nil } }
    }
}

/// The error of a call that came after the value's owner had begun to stop.
public struct OwnerStopped: Error, Hashable, Sendable {
    public init() {}
}

/// The queues of confined values.
public enum ConfinedQueue {
    static let mark = DispatchSpecificKey<Bool>()

    /// Whether the caller runs on the queue of a confined value.
    public static var isCurrent: Bool { DispatchQueue.getSpecific(key: mark) != nil }
}
