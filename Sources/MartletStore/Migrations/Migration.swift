/// One version of a database's schema: what leads to it from the version before.
///
/// A version that was shipped is never changed again; what it got wrong is put right by the next.
public struct Migration: Sendable {
    /// The version's number, above zero.
    public let version: Int
    /// A few words for logs and messages: “nicknames”.
    public let name: String
    let body: @Sendable (MigrationContext) throws -> Void

    /// - Parameters:
    ///   - version: Higher than that of every version before.
    ///   - name: A few words for logs and messages.
    ///   - body: Makes the change. It runs inside the version's transaction, and may run again
    ///     after a failure, so it does nothing outside the database.
    public init(
        _ version: Int, _ name: String,
        _ body: @escaping @Sendable (MigrationContext) throws -> Void
    ) {
        self.version = version
        self.name = name
        self.body = body
    }
}
