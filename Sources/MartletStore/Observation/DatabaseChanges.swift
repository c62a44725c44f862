/// The changes of each commit; see `DatabaseAccess.changes`.
struct DatabaseChanges: AsyncSequence, Sendable {
    let hub: ChangeHub

    func makeAsyncIterator() -> Iterator {
        Iterator(subscription: Subscription(hub))
    }

    /// A running loop.
    struct Iterator: AsyncIteratorProtocol {
        fileprivate let subscription: Subscription

        /// Waits for the next change.
        /// - Returns: The change; nil if the task was cancelled or the database closed.
        mutating func next(
            isolation: isolated (any Actor)? = #isolation
        ) async -> DatabaseChange? {
            await subscription.wait() ? subscription.take() : nil
        }
    }
}
