package import MartletStore

/// Observes a device's transactions, on the device's queue.
package protocol TransactionObserver: AnyObject {
    /// Called when a save is about to be committed.
    /// - Parameter changes: The changes of the save to synchronised records.
    func saveWillCommit(_ changes: [RecordChange], in context: WriteContext)

    /// Called when the applying connection has begun a transaction.
    func applyingHasBegun()

    /// Called when the applying connection is about to commit the changes of an answer or of a
    /// decision.
    /// - Parameter report: The effects of an answer; nil for a decision.
    func applyingWillCommit(_ report: RebaseReport?)

    /// Called when the applying connection's transaction has ended.
    func applyingHasEnded(isCommitted: Bool)

    /// Called when the device has got other rules that concern its user.
    func rulesHaveChanged()
}
