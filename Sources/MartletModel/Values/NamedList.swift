/// Named values in order, as parallel lists of names and values.
///
/// The lists of one type of records, or of one query's rows, usually share one array of names; only
/// the values are stored for each list.
public struct NamedList<Element: Hashable & Sendable>: Hashable, Sendable {
    /// The names, in the order of the values.
    public private(set) var names: [String]
    /// The values, one for each name.
    public private(set) var values: [Element]

    public init() {
        names = []
        values = []
    }

    /// Creates a list from names and values.
    /// - Precondition: `names` and `values` have the same count.
    public init(names: [String], values: [Element]) {
        precondition(names.count == values.count, "one value for each name")
        self.names = names
        self.values = values
    }

    public var count: Int { names.count }
    public var isEmpty: Bool { names.isEmpty }

    /// The first value of `name`; nil if there is none (which is not the same as null). Setting nil
    /// removes the name; setting a value replaces the old one or appends it.
    /// - Complexity: O(*n*), *n* names.
    public subscript(name: String) -> Element? {
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
    package mutating func setValue(_ value: Element, at index: Int) {
        values[index] = value
    }
}

extension NamedList: ExpressibleByDictionaryLiteral {
    /// Creates a list from the pairs of a literal.
    /// - Precondition: No name occurs twice.
    public init(dictionaryLiteral elements: (String, Element)...) {
        self.init(names: elements.map(\.0), values: elements.map(\.1))
        precondition(Set(names).count == names.count, "a name occurs twice")
    }
}

/// The attributes of one record on the wire. A name occurs once.
public typealias Attributes = NamedList<Value>
