public import MartletModel

/// The records of one type: the first column is the key, references hold keys of tables before.
public struct GeneratedTable: Hashable, Sendable {
    /// The entity type's name.
    public let type: String
    /// Column names, `id` first.
    public let columns: [String]
    /// One value for each column.
    public let rows: [[Value]]
}
