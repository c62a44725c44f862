public import MartletModel

/// Values of SQLite by name: what a record expresses itself as, and what a row is read as.
public typealias RecordValues = NamedList<SQLValue>

extension RecordValues {
    /// The value of `name` as a type of Swift.
    /// - Throws: `StoreError` `.unknown` if there is no such name, `.value` if the value is of
    ///   another kind.
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
