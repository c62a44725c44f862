/// The name of a column in a statement.
struct ColumnName: Hashable, Sendable {
    /// The name of its table in the statement; nil if the column's own name is enough.
    let table: String?
    let name: String
}
