/// How far the opening of a file has come, told before and after each version.
public struct MigrationProgress: Hashable, Sendable {
    /// The version that begins, or has just ended.
    public let version: Int
    /// That version's name.
    public let name: String
    /// Versions finished in this opening.
    public let done: Int
    /// Versions this opening has to run.
    public let total: Int
}
