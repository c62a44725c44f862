/// What the database computes over all rows of a group, or of the query where it has no groups.
extension ColumnExpression {
    /// The number of rows in which it is not null.
    public func count() -> ComputedColumn<Int> { aggregate("count(") }

    /// The number of different values, null left out.
    public func countDistinct() -> ComputedColumn<Int> { aggregate("count(DISTINCT ") }

    /// The smallest value; nil where there is none.
    @_disfavoredOverload
    public func min() -> ComputedColumn<Value?> { aggregate("min(") }

    /// The smallest value; nil where there is none.
    public func min<Wrapped>() -> ComputedColumn<Value> where Value == Wrapped? {
        aggregate("min(")
    }

    /// The largest value; nil where there is none.
    @_disfavoredOverload
    public func max() -> ComputedColumn<Value?> { aggregate("max(") }

    /// The largest value; nil where there is none.
    public func max<Wrapped>() -> ComputedColumn<Value> where Value == Wrapped? {
        aggregate("max(")
    }

    private func aggregate<Result>(_ function: String) -> ComputedColumn<Result> {
        ComputedColumn(function + fragment + ")")
    }
}

extension ColumnExpression where Value: NumericColumnValue {
    /// The sum; nil where there is no value. SQLite refuses a sum of integers that passes 64 bits.
    @_disfavoredOverload
    public func sum() -> ComputedColumn<Value?> { ComputedColumn("sum(" + fragment + ")") }

    /// The sum; nil where there is no value. SQLite refuses a sum of integers that passes 64 bits.
    public func sum<Wrapped>() -> ComputedColumn<Value> where Value == Wrapped? {
        ComputedColumn("sum(" + fragment + ")")
    }

    /// The sum as a floating-point number; 0 where there is no value.
    public func total() -> ComputedColumn<Double> { ComputedColumn("total(" + fragment + ")") }

    /// The mean; nil where there is no value.
    public func average() -> ComputedColumn<Double?> { ComputedColumn("avg(" + fragment + ")") }
}
