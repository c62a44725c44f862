/// A column as a table declares it, once: its name, and the type of Swift it holds.
///
/// ```swift
/// let name = Column("name", \Player.name)
/// let shirt = Column<Int?>("shirt")
/// ```
public struct Column<Value: ColumnValue>: Sendable {
    /// The column's name in the database.
    public let name: String
    /// The property that shows the column, where one was named.
    let keyPath: (any AnyKeyPath & Sendable)?

    /// A column without a property.
    public init(_ name: String) {
        self.name = name
        keyPath = nil
    }

    /// A column and the property that shows it, for predicates.
    public init<Root>(_ name: String, _ property: any KeyPath<Root, Value> & Sendable) {
        self.name = name
        keyPath = property
    }
}
