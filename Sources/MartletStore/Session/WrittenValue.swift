/// The effect of a write on one column: it sets a value, empties the column, or leaves it alone.
public enum WrittenValue<Value> {
    /// The write does not contain the column. An update leaves it as it is; an insert gives it its
    /// default.
    case absent
    /// The write empties the column.
    case null
    /// The write sets this value.
    case value(Value)
}

extension WrittenValue: Sendable where Value: Sendable {}
extension WrittenValue: Equatable where Value: Equatable {}

extension RowWrite {
    /// Returns the effect of the write on a column, with the value as a Swift type.
    ///
    /// ```swift
    /// switch try write.written("name", as: String.self) {
    /// case .absent, .value: break
    /// case .null: throw StoreError(.vetoed, "A player needs a name; type one.")
    /// }
    /// ```
    /// - Throws: `StoreError` `.value` if the value has another kind.
    /// - Complexity: O(*n*), *n* values of the write.
    public func written<Value: ColumnValue>(
        _ column: String, as type: Value.Type = Value.self
    ) throws -> WrittenValue<Value> {
        guard let values, let value = values[column] else { return .absent }
        if value.isNull { return .null }
        return .value(try values.value(column))
    }
}
