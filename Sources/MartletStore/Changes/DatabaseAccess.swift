/// A database that tables and data centers work on: a `DatabasePool`, or a client that keeps its
/// data in step with a server. They differ in nothing that a data center sees.
public protocol DatabaseAccess: Sendable {
    /// Runs `body` on one moment's data. Reading never waits for writing.
    /// - Throws: What `body` throws; `StoreError`.
    func read<Result: Sendable>(
        _ body: @escaping @Sendable (ReadContext) throws -> Result
    ) async throws -> Result

    /// Runs `body` as one save: all of it happens, or, where it throws, nothing. Saves come one
    /// after the other. `body` may run again from its beginning when it meets a table that is made
    /// on first use.
    /// - Throws: What `body` throws; `StoreError`.
    @discardableResult
    func write<Result: Sendable>(
        _ body: @escaping @Sendable (WriteContext) throws -> Result
    ) async throws -> Result

    /// Where commits are told of.
    var _changes: ChangeHub { get }

    /// Reads, and tells what part of the database was read.
    /// - Parameter willRead: Called before the moment is fixed whose data `body` sees: what is committed
    ///   before the call is in it; what comes later may be, or not.
    func _observedRead<Result: Sendable>(
        willRead: @escaping @Sendable () -> Void,
        _ body: @escaping @Sendable (ReadContext) throws -> Result
    ) async throws -> (Result, DatabaseRegion)
}
