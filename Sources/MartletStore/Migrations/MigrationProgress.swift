/// The progress of opening a file, reported before and after each version.
public struct MigrationProgress: Hashable, Sendable {
    /// The version that begins, or has just ended.
    public let version: Int
    /// The name of that version.
    public let name: String
    /// The number of versions that this opening has finished.
    public let done: Int
    /// The number of versions that this opening runs.
    public let total: Int
}
