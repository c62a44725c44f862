public import MartletModel

/// SQLite's values by name: the form in which a record returns its contents, and in which rows are
/// read.
public typealias RecordValues = NamedList<SQLValue>

extension RecordValues {
    /// Converts a record's attributes as the wire has them to values as its table stores them.
    /// - Parameter type: The type of the record; nil if it has no table. Binary data then stays
    ///   base64 text.
    package init(_ attributes: Attributes, of type: EntityType?) {
        let values = zip(attributes.names, attributes.values).map { name, value in
            SQLValue(value, kind: type?[attribute: name]?.kind ?? .any)
        }
        self.init(names: attributes.names, values: values)
    }

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
