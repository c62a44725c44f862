package import MartletStore

/// Hears of a device's transactions as they happen, on the device's queue.
package protocol TransactionObserver: AnyObject {
    /// A save is about to be committed.
    /// - Parameter changes: What it does to synchronised records.
    func saveWillCommit(_ changes: [RecordChange], in context: WriteContext)

    /// The applying connection has begun a transaction.
    func applyingHasBegun()

    /// The applying connection is about to commit what an answer, or a decision, has changed.
    /// - Parameter report: What an answer has changed; nil for a decision.
    func applyingWillCommit(_ report: RebaseReport?)

    /// The applying connection's transaction has ended.
    func applyingHasEnded(isCommitted: Bool)
}
