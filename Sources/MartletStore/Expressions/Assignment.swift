/// A column and its new value, for an update by a condition.
public struct Assignment: Hashable, Sendable {
    /// The name of the column.
    public let column: String
    /// The new value as SQL.
    public let fragment: SQLFragment
    /// The new value, if it is the same for all rows.
    let constant: SQLValue?
}

extension Column {
    /// Returns an assignment that sets the column to a value.
    public func set(_ value: Value) -> Assignment {
        let value = value.sqlValue
        return Assignment(
            column: name,
            fragment: SQLFragment(value: value, for: ColumnName(table: table, name: name)),
            constant: value)
    }

    /// Returns an assignment that sets the column to a value that the database computes for each
    /// row, such as `score + 1`.
    public func set(to expression: some ColumnExpression<Value>) -> Assignment {
        Assignment(column: name, fragment: expression.fragment, constant: nil)
    }

    /// Returns an assignment that sets the column to a value that the database computes for each
    /// row.
    public func set<Other: ColumnExpression>(to expression: Other) -> Assignment
    where Value == Other.Value? {
        Assignment(column: name, fragment: expression.fragment, constant: nil)
    }
}
