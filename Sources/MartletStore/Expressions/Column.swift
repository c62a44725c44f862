/// A column, which its table declares once with its name and its Swift type.
///
/// ```swift
/// let name = Column("name", \Player.name)
/// let shirt = Column<Int?>("shirt")
/// ```
public struct Column<Value: ColumnValue>: ColumnExpression, AnyColumn {
    /// The column's name in the database.
    public let name: String
    /// The property that shows the column, if the declaration names one.
    public let property: (any AnyKeyPath & Sendable)?
    /// The name of the column's table in a query; nil if the column's own name is enough.
    public let table: String?

    /// Creates a column without a property.
    public init(_ name: String) {
        self.init(name, property: nil, table: nil)
    }

    /// Creates a column with the property that shows it, for predicates.
    public init<Root>(_ name: String, _ property: any KeyPath<Root, Value> & Sendable) {
        self.init(name, property: property, table: nil)
    }

    private init(_ name: String, property: (any AnyKeyPath & Sendable)?, table: String?) {
        self.name = name
        self.property = property
        self.table = table
    }

    /// Returns the same column of the table that has this name in a query.
    public func of(_ table: String) -> Column<Value> {
        Column(name, property: property, table: table)
    }

    public var fragment: SQLFragment {
        SQLFragment(column: ColumnName(table: table, name: name))
    }

    public var resultName: String? { name }
}
