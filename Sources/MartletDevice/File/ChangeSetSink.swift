internal import MartletModel
package import MartletProtocol

/// The receiver of the edits that a migration finds or makes: the queue of change sets to send. It
/// works in the caller's transaction.
package protocol ChangeSetSink {
    /// Turns external writes to the file into change sets, and tries again those that no set could
    /// carry before.
    func closeExternal(_ store: LocalStore) throws
    /// Adds a version's own edits to its change set.
    /// - Parameter set: The set's number; nil before the first edits, which make the set.
    /// - Returns: The set's number; nil if the edits have cancelled each other out.
    func add(_ notes: [NotedRecord], to set: Int64?, store: LocalStore) throws -> Int64?
    /// Applies changes that the server sent while the tables had no place for them, under the
    /// device's own edits.
    /// - Parameter set: A difference: whole records, and deletions.
    func takeIn(_ set: ChangeSet, store: LocalStore) throws
}
