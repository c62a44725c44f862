public import MartletDevice
public import MartletStore

/// A database that is kept in step with a server, and what it keeps of refused edits: what an app's
/// own code for refused edits needs of `MartletClient`.
///
/// Written against this protocol, that code runs on simulated devices too (`MartletTesting`).
public protocol SyncedDatabase: DatabaseAccess {
    /// Refused change sets, oldest first.
    /// - Throws: `StoreError`.
    func parked() async throws -> [ParkedSet]

    /// Gives a refused change set up.
    /// - Throws: `StoreError` `.unknown` where there is none of that identifier.
    func drop(_ identifier: String) async throws

    /// Makes a refused change set's edits again, on top of what the server has now.
    /// - Returns: The new set's identifier.
    /// - Throws: `StoreError` `.value` where the edits do not fit what is there now.
    @discardableResult
    func retry(_ identifier: String) async throws -> String
}

extension MartletClient: SyncedDatabase {}
