/// One version of a database's schema: the change from the version before.
///
/// Never change a version that was shipped; correct its mistakes in the next one.
///
/// ```swift
/// Migration(2, "nicknames") { try $0.addColumn("nickname TEXT", to: "players") }
/// ```
public struct Migration: Sendable {
    /// The version's number, above zero.
    public let version: Int
    /// A few words for logs and messages, such as “nicknames”.
    public let name: String
    let body: @Sendable (MigrationContext) throws -> Void

    /// Creates a version.
    /// - Parameters:
    ///   - version: A number higher than those of all versions before.
    ///   - name: A few words for logs and messages.
    ///   - body: Makes the change. It runs inside the version's transaction, and may run again
    ///     after a failure, so it must change nothing outside the database.
    public init(
        _ version: Int, _ name: String,
        _ body: @escaping @Sendable (MigrationContext) throws -> Void
    ) {
        self.version = version
        self.name = name
        self.body = body
    }
}
