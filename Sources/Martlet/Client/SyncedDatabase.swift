public import MartletDevice
public import MartletStore

/// A database that is synchronised with a server, with its refused change sets: the part of
/// `MartletClient` that an app's code for refused edits needs.
///
/// Code that uses this protocol also runs on simulated devices (`MartletTesting`).
public protocol SyncedDatabase: DatabaseAccess {
    /// Returns the refused change sets, oldest first.
    /// - Throws: `StoreError` if the database was closed, or the file fails.
    func parked() async throws -> [ParkedSet]

    /// Gives up a refused change set.
    /// - Throws: `StoreError` `.unknown` if no refused set has this identifier.
    func drop(_ identifier: String) async throws

    /// Makes the edits of a refused change set again, on top of the server's newest state.
    /// - Returns: The new set's identifier.
    /// - Throws: `StoreError` `.value` if the edits do not fit that state.
    @discardableResult
    func retry(_ identifier: String) async throws -> String
}

extension MartletClient: SyncedDatabase {}

extension SyncedDatabase {
    /// Returns whether the rules let the user make a change; see `ReadContext.may`.
    /// - Throws: The errors of `ReadContext.may` and of `read`.
    public func may(
        _ operation: RowWrite.Operation, _ type: String, _ id: RecordID? = nil,
        _ columns: [String] = [], values: RecordValues = [:]
    ) async throws -> Bool {
        try await read { try $0.may(operation, type, id, columns, values: values) }
    }
}
