/// What each commit changes, from the moment a loop begins.
///
/// One element a commit; a consumer that is busy gets what happened meanwhile taken together as one.
public struct DatabaseChanges: AsyncSequence, Sendable {
    /// What one commit, or several, changed.
    public typealias Element = DatabaseChange
    /// It does not fail.
    public typealias Failure = Never

    let hub: ChangeHub

    public func makeAsyncIterator() -> Iterator {
        Iterator(subscription: Subscription(hub))
    }

    /// One loop under way.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate let subscription: Subscription

        /// Waits for the next change.
        /// - Returns: nil when the task was cancelled or the database closed.
        public mutating func next(
            isolation: isolated (any Actor)? = #isolation
        ) async -> DatabaseChange? {
            await subscription.wait() ? subscription.take() : nil
        }

        /// Waits for the next change.
        public mutating func next() async -> DatabaseChange? {
            await next(isolation: nil)
        }
    }
}
