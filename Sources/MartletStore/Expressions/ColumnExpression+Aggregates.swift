/// Aggregates, which the database computes over the rows of a group, or over all rows of a query
/// without groups.
extension ColumnExpression {
    /// Returns the number of rows in which the value is not null.
    public func count() -> ComputedColumn<Int> { aggregate("count(") }

    /// Returns the number of different values, without null.
    public func countDistinct() -> ComputedColumn<Int> { aggregate("count(DISTINCT ") }

    /// Returns the smallest value; nil if there is none.
    @_disfavoredOverload
    public func min() -> ComputedColumn<Value?> { aggregate("min(") }

    /// Returns the smallest value; nil if there is none.
    public func min<Wrapped>() -> ComputedColumn<Value> where Value == Wrapped? {
        aggregate("min(")
    }

    /// Returns the largest value; nil if there is none.
    @_disfavoredOverload
    public func max() -> ComputedColumn<Value?> { aggregate("max(") }

    /// Returns the largest value; nil if there is none.
    public func max<Wrapped>() -> ComputedColumn<Value> where Value == Wrapped? {
        aggregate("max(")
    }

    private func aggregate<Result>(_ function: String) -> ComputedColumn<Result> {
        ComputedColumn(function + fragment + ")")
    }
}

extension ColumnExpression where Value: NumericColumnValue {
    /// Returns the sum; nil if there is no value. SQLite refuses a sum of integers beyond 64 bits.
    @_disfavoredOverload
    public func sum() -> ComputedColumn<Value?> { ComputedColumn("sum(" + fragment + ")") }

    /// Returns the sum; nil if there is no value. SQLite refuses a sum of integers beyond 64 bits.
    public func sum<Wrapped>() -> ComputedColumn<Value> where Value == Wrapped? {
        ComputedColumn("sum(" + fragment + ")")
    }

    /// Returns the sum as a floating-point number; 0 if there is no value.
    public func total() -> ComputedColumn<Double> { ComputedColumn("total(" + fragment + ")") }

    /// Returns the mean; nil if there is no value.
    public func average() -> ComputedColumn<Double?> { ComputedColumn("avg(" + fragment + ")") }
}
