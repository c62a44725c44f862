/// An expression that a query can compare, order by and select: a column, or a value that the
/// database computes from columns.
public protocol ColumnExpression<Value>: Sendable {
    /// The Swift type of the values.
    associatedtype Value: ColumnValue

    /// The expression as SQL.
    var fragment: SQLFragment { get }

    /// The name of the value in a query's rows; nil if SQLite may choose one.
    var resultName: String? { get }
}

extension ColumnExpression {
    public var resultName: String? { nil }

    /// The column, if the expression is only a column.
    var column: ColumnName? { fragment.onlyColumn }
}

/// A column type that holds text, so that queries can search in it.
public protocol TextColumnValue: ColumnValue {}

extension String: TextColumnValue {}
extension Optional: TextColumnValue where Wrapped: TextColumnValue {}

/// A column type that holds numbers, so that the database can compute with it.
public protocol NumericColumnValue: ColumnValue {}

extension Int: NumericColumnValue {}
extension Int64: NumericColumnValue {}
extension Int32: NumericColumnValue {}
extension Int16: NumericColumnValue {}
extension Int8: NumericColumnValue {}
extension UInt: NumericColumnValue {}
extension UInt64: NumericColumnValue {}
extension UInt32: NumericColumnValue {}
extension UInt16: NumericColumnValue {}
extension UInt8: NumericColumnValue {}
extension Double: NumericColumnValue {}
extension Float: NumericColumnValue {}
extension Optional: NumericColumnValue where Wrapped: NumericColumnValue {}
