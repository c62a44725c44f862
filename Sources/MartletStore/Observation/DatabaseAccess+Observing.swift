extension DatabaseAccess {
    /// Observes the result of a query.
    /// - Parameter fetch: Reads the value. It runs again whenever the result may have changed.
    public func observe<Value: Sendable>(
        _ fetch: @escaping @Sendable (ReadContext) throws -> Value
    ) -> DatabaseObservation<Value> {
        DatabaseObservation(database: self, fetch: fetch)
    }

    /// The changes of each commit, by this app or by another program.
    public var changes: DatabaseChanges { DatabaseChanges(hub: _changes) }
}
