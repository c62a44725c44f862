public import Dispatch
internal import Synchronization

/// A queue for calls that block. A task that waits for such a call blocks none of the threads that
/// run tasks.
public final class CallQueue: Sendable {
    /// The queue on which the calls run.
    public let queue: DispatchQueue
    /// The number of calls that have ended. It is written after each call, and read by the task
    /// that continues with the result.
    ///
    /// The number itself is not used. If a call ends before its caller has begun to wait, the
    /// runtime orders the two in a way that the Thread Sanitizer does not see. It sees this access.
    private let ended = Atomic(0)

    /// - Parameter attributes: Empty for one call at a time, in the order in which they were
    ///   requested.
    public init(label: String, attributes: DispatchQueue.Attributes = []) {
        queue = DispatchQueue(label: label, attributes: attributes)
    }

    /// Runs a call on the queue.
    /// - Returns: The result of the call.
    /// - Throws: The error of the call.
    public func run<Answer: Sendable, Failure: Error>(
        _ body: @escaping @Sendable () throws(Failure) -> Answer
    ) async throws(Failure) -> Answer {
        let result: Result<Answer, Failure> = await withCheckedContinuation { continuation in
            queue.async {
                let result = Result(catching: body)
                self.ended.add(1, ordering: .releasing)
                continuation.resume(returning: result)
            }
        }
        _ = ended.load(ordering: .acquiring)
        return try result.get()
    }
}
