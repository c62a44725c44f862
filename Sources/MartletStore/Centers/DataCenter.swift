/// A business-facing object for one area of an app. It owns tables, coordinates work across them,
/// and returns values.
///
/// A table has business logic for itself only. A data center has the rest: the operations of the
/// app, each over as many tables as it needs, in one transaction. Views and controllers talk only
/// to data centers. An app has one for each large area, held by the objects that need it, and never
/// one for everything.
///
/// ```swift
/// struct Roster: DataCenter {
///     let database: any DatabaseAccess
///     private let players = Players()
///
///     func sign(_ player: Player) async throws {
///         try await writing { try players.insert(player, in: $0) }
///     }
/// }
/// ```
public protocol DataCenter: Sendable {
    /// The database with the tables.
    var database: any DatabaseAccess { get }
}

extension DataCenter {
    /// Runs `body` on the data of one moment, for the methods of the data center.
    /// - Throws: The error of `body`; `StoreError`.
    public func reading<Result: Sendable>(
        _ body: @escaping @Sendable (ReadContext) throws -> Result
    ) async throws -> Result {
        try await database.read(body)
    }

    /// Runs work on any number of tables as one save.
    /// - Throws: The error of `body`, and `StoreError`; nothing was written then.
    @discardableResult
    public func writing<Result: Sendable>(
        _ body: @escaping @Sendable (WriteContext) throws -> Result
    ) async throws -> Result {
        try await database.write(body)
    }
}
