/// A column of whatever type, for lists of columns.
public protocol AnyColumn: Sendable {
    /// The column's name in the database.
    var name: String { get }
    /// The property that shows the column, where one was named.
    var property: (any AnyKeyPath & Sendable)? { get }
}

extension AnyColumn {
    /// Whether it is shown by a property.
    func shows(_ path: AnyKeyPath) -> Bool {
        guard let property else { return false }
        return property as AnyKeyPath == path
    }
}
