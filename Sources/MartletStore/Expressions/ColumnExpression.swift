/// What a query can compare, order by and select: a column, or something computed from columns.
public protocol ColumnExpression<Value>: Sendable {
    /// The type of Swift it is read as.
    associatedtype Value: ColumnValue

    /// The expression as SQL.
    var fragment: SQLFragment { get }

    /// The name it has in a query's rows; nil where SQLite may choose.
    var resultName: String? { get }
}

extension ColumnExpression {
    public var resultName: String? { nil }

    /// The column itself, where the expression is nothing else.
    var column: ColumnName? { fragment.onlyColumn }
}

/// A column's type that holds text, so that a text can be looked for in it.
public protocol TextColumnValue: ColumnValue {}

extension String: TextColumnValue {}
extension Optional: TextColumnValue where Wrapped: TextColumnValue {}

/// A column's type that holds numbers, so that the database can compute with it.
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
