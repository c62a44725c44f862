/// A database for tables and data centers: a `DatabasePool`, or a client that synchronises with a
/// server. Data centers use both in the same way.
///
/// ```swift
/// let count = try await database.read { try players.count(in: $0) }
/// try await database.write { try players.insert(player, in: $0) }
/// ```
public protocol DatabaseAccess: Sendable {
    /// Runs `body` on the data of one moment. A read never waits for a write. If `body` meets a
    /// table that is created on first use, the database creates it and runs `body` again from its
    /// beginning.
    /// - Throws: The error of `body`; `StoreError`.
    func read<Result: Sendable>(
        _ body: @escaping @Sendable (ReadContext) throws -> Result
    ) async throws -> Result

    /// Runs `body` as one save. If `body` throws, the save changes nothing. Saves run one after the
    /// other. If `body` meets a table that is created on first use, the database creates it and
    /// runs `body` again from its beginning.
    /// - Throws: The error of `body`; `StoreError`.
    @discardableResult
    func write<Result: Sendable>(
        _ body: @escaping @Sendable (WriteContext) throws -> Result
    ) async throws -> Result

    /// The hub that publishes commits.
    var _changes: ChangeHub { get }

    /// Runs `body` as `read` does, and also returns the region that it has read.
    /// - Parameter willRead: Called before the moment of the data is fixed. `body` sees all commits
    ///   before this call; it may or may not see later ones.
    /// - Throws: The error of `body`; `StoreError`.
    func _observedRead<Result: Sendable>(
        willRead: @escaping @Sendable () -> Void,
        _ body: @escaping @Sendable (ReadContext) throws -> Result
    ) async throws -> (Result, DatabaseRegion)
}
