/// The changes of each commit, from the start of a loop.
///
/// Each element has the changes of one commit. If the consumer is busy meanwhile, the next element
/// combines the changes of several.
public struct DatabaseChanges: AsyncSequence, Sendable {
    /// The changes of one commit, or of several.
    public typealias Element = DatabaseChange
    /// The sequence does not fail.
    public typealias Failure = Never

    let hub: ChangeHub

    public func makeAsyncIterator() -> Iterator {
        Iterator(subscription: Subscription(hub))
    }

    /// A running loop.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let subscription: Subscription

        /// Waits for the next change.
        /// - Returns: The change; nil if the task was cancelled or the database closed.
        public mutating func next(
            isolation: isolated (any Actor)? = #isolation
        ) async -> DatabaseChange? {
            await subscription.wait() ? subscription.take() : nil
        }

        /// Waits for the next change.
        /// - Returns: The change; nil if the task was cancelled or the database closed.
        public mutating func next() async -> DatabaseChange? {
            await next(isolation: nil)
        }
    }
}
