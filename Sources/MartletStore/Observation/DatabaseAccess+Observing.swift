extension DatabaseAccess {
    /// Observes what a query gives.
    /// - Parameter fetch: Reads the value; run again whenever it may give another.
    public func observe<Value: Sendable>(
        _ fetch: @escaping @Sendable (ReadContext) throws -> Value
    ) -> DatabaseObservation<Value> {
        DatabaseObservation(database: self, fetch: fetch)
    }

    /// What each commit changes, whoever made it.
    public var changes: DatabaseChanges { DatabaseChanges(hub: _changes) }
}
