/// A column of whatever type, for lists of columns.
public protocol AnyColumn: Sendable {
    /// The column's name in the database.
    var name: String { get }
    /// The property that shows the column, where one was named.
    var property: (any AnyKeyPath & Sendable)? { get }
}
