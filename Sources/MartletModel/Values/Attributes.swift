/// The attributes of one record, in order: parallel lists of names and values.
///
/// Records of one type usually share their list of names, so the names are one shared array and
/// only the values are per record.
public struct Attributes: Hashable, Sendable {
    /// Names, unique, in the order of the values.
    public private(set) var names: [String]
    /// Values, one for each name.
    public private(set) var values: [Value]

    public init() {
        names = []
        values = []
    }

    /// - Precondition: `names` and `values` have the same count; names are unique.
    public init(names: [String], values: [Value]) {
        precondition(names.count == values.count, "one value for each name")
        self.names = names
        self.values = values
    }

    public var count: Int { names.count }
    public var isEmpty: Bool { names.isEmpty }

    /// The value of `name`; nil when the attribute is absent (which is not the same as null).
    /// Setting nil removes the attribute; setting a value replaces it or appends it.
    /// - Complexity: O(*n*), *n* attributes.
    public subscript(name: String) -> Value? {
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

    /// Replaces the value at a position.
    public mutating func setValue(_ value: Value, at index: Int) {
        values[index] = value
    }
}
