internal import SQLiteKit

/// Where a decoder finds values by name.
///
/// A class without generic methods on the way of each property: the container that asks is generic
/// over the keys of the app's type, so that what it calls could not be specialised here.
package class NamedValues {
    /// The names, by position.
    final let names: [String]
    /// Types mostly ask in the order of the columns.
    private final var last = -1

    /// The container made for the last type, where records are read one after the other. It holds
    /// this object, so `forgetContainer` must end that.
    private final var container: AnyObject?

    init(names: [String]) {
        self.names = names
    }

    /// Whether many records are read by this object.
    var keepsContainer: Bool { false }

    /// The container for a type's properties. Making one costs several look-ups in the runtime's
    /// tables, so it is kept.
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

    /// Lets go of the container.
    final func forgetContainer() { container = nil }

    /// Begins to read a record.
    final func begin() { last = -1 }

    /// The position of a name, without taking it as read.
    final func position(of name: String) -> Int? {
        let next = last + 1
        if next < names.count, names[next] == name { return next }
        return anyPosition(of: name)
    }

    /// The position of a name that is read now; nil where there is none.
    final func take(_ name: String) -> Int? {
        guard let position = position(of: name) else { return nil }
        last = position
        return position
    }

    /// The position of a property's value.
    /// - Throws: `StoreError` `.value` where there is none.
    final func required(_ name: String) throws -> Int {
        guard let position = take(name) else {
            throw StoreError(
                .value,
                "There is no column “\(name)” in what was read, and the property is not optional;"
                    + " there are \(names.joined(separator: ", ")).")
        }
        return position
    }

    /// The position of a property's value; nil where there is none, or a null.
    final func optional(_ name: String) -> Int? {
        guard let position = take(name) else { return nil }
        return isNull(at: position) ? nil : position
    }

    func anyPosition(of name: String) -> Int? { names.firstIndex(of: name) }
    func isNull(at position: Int) -> Bool { true }
    /// The integer stored; nil where there is another kind of value.
    func integer(at position: Int) -> Int64? { nil }
    /// The real number stored; nil where there is another kind of value.
    func real(at position: Int) -> Double? { nil }
    /// The text stored; nil where there is another kind of value.
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

    /// The same failure, with the column's name.
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

/// A container, as an object.
final class KeptContainer<Container> {
    let container: Container

    init(_ container: Container) {
        self.container = container
    }
}
