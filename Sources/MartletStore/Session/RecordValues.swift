/// Values by name, in order: what a record expresses itself as, and what a row is read as.
///
/// Rows of one query share their list of names, so only the values are per row.
public struct RecordValues: Hashable, Sendable {
    /// Names, in the order of the values.
    public private(set) var names: [String]
    /// Values, one for each name.
    public private(set) var values: [SQLValue]

    public init() {
        names = []
        values = []
    }

    /// - Precondition: `names` and `values` have the same count.
    public init(names: [String], values: [SQLValue]) {
        precondition(names.count == values.count, "one value for each name")
        self.names = names
        self.values = values
    }

    public var count: Int { names.count }
    public var isEmpty: Bool { names.isEmpty }

    /// The value of `name`; nil when there is none (which is not the same as null). Setting nil
    /// removes it.
    /// - Complexity: O(*n*), *n* names.
    public subscript(name: String) -> SQLValue? {
        get {
            guard let index = names.firstIndex(of: name) else { return nil }
            return values[index]
        }
        set {
            if let index = names.firstIndex(of: name) {
                if let newValue {
                    values[index] = newValue
                } else {
                    names.remove(at: index)
                    values.remove(at: index)
                }
            } else if let newValue {
                names.append(name)
                values.append(newValue)
            }
        }
    }

    /// The value of `name` as a type of Swift.
    /// - Throws: `StoreError` `.unknown` where there is no such name, `.value` where the value is
    ///   of another kind.
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

extension RecordValues: ExpressibleByDictionaryLiteral {
    /// - Precondition: No name stands twice.
    public init(dictionaryLiteral elements: (String, SQLValue)...) {
        names = elements.map(\.0)
        values = elements.map(\.1)
        precondition(Set(names).count == names.count, "a name stands twice")
    }
}
