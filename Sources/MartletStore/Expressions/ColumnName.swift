/// A column as a statement names it.
struct ColumnName: Hashable, Sendable {
    /// The name its table has in the statement; nil where the column's own name is enough.
    let table: String?
    let name: String
}
