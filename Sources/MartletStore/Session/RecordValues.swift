public import MartletModel

/// SQLite's values by name: the form in which a record returns its contents, and in which rows are
/// read.
public typealias RecordValues = NamedList<SQLValue>

extension RecordValues {
    /// Returns the value of `name` as a Swift type.
    /// - Throws: `StoreError` `.unknown` if there is no such name, `.value` if the value has
    ///   another kind.
    /// - Complexity: O(*n*), *n* names.
    public func value<Result: ColumnValue>(
        _ name: String, as type: Result.Type = Result.self
    ) throws -> Result {
        guard let value = self[name] else {
            throw StoreError(
                .unknown, "There is no value “\(name)”; there are \(names.joined(separator: ", "))."
            )
        }
        do {
            return try Result(sqlValue: value)
        } catch let error as StoreError {
            throw StoreError(error.kind, "“\(name)”: \(error.message)")
        }
    }
}
