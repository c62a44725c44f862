extension DatabaseAccess {
    /// Observes the result of a query.
    /// - Parameter fetch: Reads the value. It runs again whenever the result may have changed.
    public func observe<Value: Sendable>(
        _ fetch: @escaping @Sendable (ReadContext) throws -> Value
    ) -> DatabaseObservation<Value> {
        DatabaseObservation(database: self, fetch: fetch)
    }

    /// The changes of each commit, by this app or by another program, from the start of a loop.
    ///
    /// Each element has the changes of one commit. If the consumer is busy meanwhile, the next
    /// element combines the changes of several. The loop ends when its task is cancelled or the
    /// database is closed.
    public var changes: some AsyncSequence<DatabaseChange, Never> & Sendable {
        DatabaseChanges(hub: _changes)
    }
}
