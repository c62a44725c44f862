/// Where the edits go that a migration finds or makes: the queue of change sets to be sent. In the
/// caller's transaction.
package protocol ChangeSetSink {
    /// Turns what other programs wrote to the file into change sets.
    func closeForeign(_ store: LocalStore) throws
    /// Adds a version's own edits to its change set.
    /// - Parameter set: The set's number; nil before the first edits, which make the set.
    /// - Returns: The set's number; nil where its edits have cancelled each other out.
    func add(_ changes: [RecordChange], to set: Int64?, store: LocalStore) throws -> Int64?
}
