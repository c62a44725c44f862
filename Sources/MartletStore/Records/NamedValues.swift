internal import SQLiteKit

/// A source of values by name, for a decoder.
///
/// It has no generic methods that are called for each property. The container that calls them is
/// generic over the keys of the app's type, so they could not be specialised here.
package class NamedValues {
    /// The names, by position.
    final let names: [String]
    /// The position that was read last. Types usually read in the order of the columns.
    private final var last = -1

    /// The container of the last type, if this object reads many records. The container refers to
    /// this object, so `forgetContainer` must break the cycle.
    private final var container: AnyObject?

    init(names: [String]) {
        self.names = names
    }

    /// Whether this object reads many records.
    var keepsContainer: Bool { false }

    /// Returns the container for a type's properties. It is kept, because creating one costs
    /// several look-ups in the runtime's tables.
    final func container<Key: CodingKey>(
        _ make: () -> KeyedDecodingContainer<Key>
    ) -> KeyedDecodingContainer<Key> {
        if let kept = container as? KeptContainer<KeyedDecodingContainer<Key>> {
            return kept.container
        }
        let made = make()
        if keepsContainer { container = KeptContainer(made) }
        return made
    }

    /// Releases the container.
    final func forgetContainer() { container = nil }

    /// Begins to read a record.
    final func begin() { last = -1 }

    /// Returns the position of a name without marking it as read; nil if there is none.
    final func position(of name: String) -> Int? {
        let next = last + 1
        if next < names.count, names[next] == name { return next }
        return anyPosition(of: name)
    }

    /// Returns the position of a name and marks it as read; nil if there is none.
    final func take(_ name: String) -> Int? {
        guard let position = position(of: name) else { return nil }
        last = position
        return position
    }

    /// Returns the position of a property's value.
    /// - Throws: `StoreError` `.value` if there is none.
    final func required(_ name: String) throws -> Int {
        guard let position = take(name) else {
            throw StoreError(
                .value,
                "There is no column “\(name)” in what was read, and the property is not optional;"
                    + " there are \(names.joined(separator: ", ")).")
        }
        return position
    }

    /// Returns the position of a property's value; nil if there is none, or if it is null.
    final func optional(_ name: String) -> Int? {
        guard let position = take(name) else { return nil }
        return isNull(at: position) ? nil : position
    }

    func anyPosition(of name: String) -> Int? { names.firstIndex(of: name) }
    func isNull(at position: Int) -> Bool { true }
    /// Returns the stored integer; nil if the value has another kind.
    func integer(at position: Int) -> Int64? { nil }
    /// Returns the stored real number; nil if the value has another kind.
    func real(at position: Int) -> Double? { nil }
    /// Returns the stored text; nil if the value has another kind.
    func text(at position: Int) throws -> String? { nil }
    func value(at position: Int) throws -> SQLValue { .null }
    func read<Value: ColumnValue>(_ type: Value.Type, at position: Int) throws -> Value {
        try Value(sqlValue: value(at: position))
    }
}

// MARK: - Properties

extension NamedValues {
    final func string(at position: Int) throws -> String {
        do {
            if let text = try text(at: position) { return text }
            return try String(sqlValue: value(at: position))
        } catch {
            throw named(error, position)
        }
    }

    final func number<Number: FixedWidthInteger & ColumnValue>(
        _ type: Number.Type, at position: Int
    ) throws -> Number {
        if let stored = integer(at: position), let exact = Number(exactly: stored) {
            return exact
        }
        do {
            return try Number(sqlValue: value(at: position))
        } catch {
            throw named(error, position)
        }
    }

    final func double(at position: Int) throws -> Double {
        if let stored = real(at: position) { return stored }
        do {
            return try Double(sqlValue: value(at: position))
        } catch {
            throw named(error, position)
        }
    }

    final func flag(at position: Int) throws -> Bool {
        if let stored = integer(at: position), stored == 0 || stored == 1 { return stored == 1 }
        do {
            return try Bool(sqlValue: value(at: position))
        } catch {
            throw named(error, position)
        }
    }

    /// Returns the same error with the column's name.
    final func named(_ error: any Error, _ position: Int) -> any Error {
        (error as? StoreError)?.naming(column: names[position]) ?? error
    }
}

/// Decodes values by name.
final class ValuesDecoder: NamedValues {
    private let values: [SQLValue]

    private init(_ values: RecordValues) {
        self.values = values.values
        super.init(names: values.names)
    }

    static func decode<Result: Decodable>(
        _ type: Result.Type, from values: RecordValues
    ) throws -> Result {
        try NamedValuesDecoder(ValuesDecoder(values)).decode(type)
    }

    override func isNull(at position: Int) -> Bool { values[position].isNull }

    override func integer(at position: Int) -> Int64? {
        if case .integer(let number) = values[position] { number } else { nil }
    }

    override func real(at position: Int) -> Double? {
        if case .real(let number) = values[position] { number } else { nil }
    }

    override func text(at position: Int) -> String? {
        if case .text(let text) = values[position] { text } else { nil }
    }

    override func value(at position: Int) -> SQLValue { values[position] }
}

/// An object that holds a container.
final class KeptContainer<Container> {
    let container: Container

    init(_ container: Container) {
        self.container = container
    }
}
