public import MartletModel

/// The records of one type. The first column is the key. References have keys of earlier tables.
public struct GeneratedTable: Hashable, Sendable {
    /// The entity type's name.
    public let type: String
    /// The names of the columns, `id` first.
    public let columns: [String]
    /// The rows, with one value for each column.
    public let rows: [[Value]]
}
