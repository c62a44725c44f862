/// A column of any type, for lists of columns.
public protocol AnyColumn: Sendable {
    /// The column's name in the database.
    var name: String { get }
    /// The property that shows the column, if the declaration names one.
    var property: (any AnyKeyPath & Sendable)? { get }
}

extension AnyColumn {
    /// Returns whether the property at `path` shows the column.
    func shows(_ path: AnyKeyPath) -> Bool {
        guard let property else { return false }
        return property as AnyKeyPath == path
    }
}
