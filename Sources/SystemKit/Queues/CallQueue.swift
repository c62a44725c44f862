public import Dispatch
internal import Synchronization

/// A queue for calls that block: who waits for one of them holds no thread of the tasks' own.
public final class CallQueue: Sendable {
    /// Where the calls are made.
    public let queue: DispatchQueue
    /// How many calls have ended, written behind each and read by who goes on with what it gave.
    ///
    /// Nobody needs the number. Where a call ends before its caller has begun to wait, the runtime
    /// puts the two in order in a way that the Thread Sanitizer does not see; this it sees.
    private let ended = Atomic(0)

    /// - Parameter attributes: None for one call at a time, in the order they were asked for.
    public init(label: String, attributes: DispatchQueue.Attributes = []) {
        queue = DispatchQueue(label: label, attributes: attributes)
    }

    /// Makes a call on the queue.
    /// - Returns: What it gave.
    /// - Throws: What it throws.
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
