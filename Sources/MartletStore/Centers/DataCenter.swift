/// A business-facing object for one area of an app: it owns tables, orchestrates work across them,
/// and hands out values.
///
/// Tables do weak business logic, on one table each; a data center does the strong kind: what an
/// operation of the app means, over as many tables as it takes, in one transaction. Views and
/// controllers talk to data centers only. An app has one for each large area, held by those who
/// need it, never one for everything.
///
/// ```swift
/// struct Roster: DataCenter {
///     let database: any DatabaseAccess
///     private let players = Players()
///
///     func sign(_ player: Player, for team: RecordID) async throws { … }
/// }
/// ```
public protocol DataCenter: Sendable {
    /// Where the tables are.
    var database: any DatabaseAccess { get }
}

extension DataCenter {
    /// Reads one moment's data, for the methods of the data center.
    public func reading<Result: Sendable>(
        _ body: @escaping @Sendable (ReadContext) throws -> Result
    ) async throws -> Result {
        try await database.read(body)
    }

    /// Runs work over any number of tables as one save.
    @discardableResult
    public func writing<Result: Sendable>(
        _ body: @escaping @Sendable (WriteContext) throws -> Result
    ) async throws -> Result {
        try await database.write(body)
    }
}
