/// What a column is set to when rows are updated by a condition.
public struct Assignment: Hashable, Sendable {
    /// The column.
    public let column: String
    /// What it is set to, as SQL.
    public let fragment: SQLFragment
    /// The value, where it is one and the same for all rows.
    let constant: SQLValue?
}

extension Column {
    /// Sets it to a value.
    public func set(_ value: Value) -> Assignment {
        let value = value.sqlValue
        return Assignment(
            column: name,
            fragment: SQLFragment(value: value, for: ColumnName(table: table, name: name)),
            constant: value)
    }

    /// Sets it to what the database computes for each row, such as `score + 1`.
    public func set(to expression: some ColumnExpression<Value>) -> Assignment {
        Assignment(column: name, fragment: expression.fragment, constant: nil)
    }

    /// Sets it to what the database computes for each row.
    public func set<Other: ColumnExpression>(to expression: Other) -> Assignment
    where Value == Other.Value? {
        Assignment(column: name, fragment: expression.fragment, constant: nil)
    }
}
