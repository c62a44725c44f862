internal import Foundation
internal import SQLiteKit

/// Where a decoder finds values by name.
protocol NamedValues {
    /// The position of a name; `after` is that of the last one asked for, since types mostly ask
    /// in the order of the columns.
    func position(of name: String, after last: Int) -> Int?
    func isNull(at position: Int) -> Bool
    func read<Value: ColumnValue>(_ type: Value.Type, at position: Int) throws -> Value
    func value(at position: Int) throws -> SQLValue
    func name(at position: Int) -> String
    var names: [String] { get }
}

/// Decodes the current row of a statement.
struct RowDecoder: NamedValues {
    let statement: Statement
    let layout: RowLayout

    func decode<Result: Decodable>(_ type: Result.Type) throws -> Result {
        try NamedValuesDecoder(self).decode(type)
    }

    var names: [String] { layout.names }

    func position(of name: String, after last: Int) -> Int? {
        let next = last + 1
        if next < layout.names.count, layout.names[next] == name { return next }
        return layout.index(of: name)
    }

    func name(at position: Int) -> String { layout.names[position] }
    func isNull(at position: Int) -> Bool { statement.isNull(Int32(position)) }

    func read<Value: ColumnValue>(_ type: Value.Type, at position: Int) throws -> Value {
        try Value._read(Row(statement, layout: layout), at: position)
    }

    func value(at position: Int) throws -> SQLValue {
        try Row(statement, layout: layout).value(at: position)
    }
}

/// Decodes values by name.
struct ValuesDecoder: NamedValues {
    let values: RecordValues

    static func decode<Result: Decodable>(
        _ type: Result.Type, from values: RecordValues
    ) throws -> Result {
        try NamedValuesDecoder(ValuesDecoder(values: values)).decode(type)
    }

    var names: [String] { values.names }

    func position(of name: String, after last: Int) -> Int? {
        let next = last + 1
        if next < values.names.count, values.names[next] == name { return next }
        return values.names.firstIndex(of: name)
    }

    func name(at position: Int) -> String { values.names[position] }
    func isNull(at position: Int) -> Bool { values.values[position].isNull }

    func read<Value: ColumnValue>(_ type: Value.Type, at position: Int) throws -> Value {
        try Value(sqlValue: values.values[position])
    }

    func value(at position: Int) -> SQLValue { values.values[position] }
}

/// The decoder a record is made by.
struct NamedValuesDecoder<Source: NamedValues>: Decoder {
    let source: Source

    init(_ source: Source) {
        self.source = source
    }

    func decode<Result: Decodable>(_ type: Result.Type) throws -> Result {
        do {
            return try Result(from: self)
        } catch let error as DecodingError {
            throw StoreError(.value, "\(type) cannot be made from what was read\(error.place).")
        }
    }

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(NamedValuesContainer<Key, Source>(source: source))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        throw StoreError(.value, "A row is read by names; the type asks for a list.")
    }

    func singleValueContainer() throws -> any SingleValueDecodingContainer {
        throw StoreError(.value, "A row is read by names; the type asks for one value.")
    }
}

/// A row's columns, or a record's values, as a type's properties.
///
/// A class, because remembering the last position needs a place that outlives a call.
private final class NamedValuesContainer<
    Key: CodingKey, Source: NamedValues
>: KeyedDecodingContainerProtocol {
    private let source: Source
    private var last = -1

    init(source: Source) {
        self.source = source
    }

    var codingPath: [any CodingKey] { [] }
    var allKeys: [Key] { source.names.compactMap { Key(stringValue: $0) } }

    func contains(_ key: Key) -> Bool {
        source.position(of: key.stringValue, after: last) != nil
    }

    private func position(_ key: Key) throws -> Int {
        let name = key.stringValue
        guard let position = source.position(of: name, after: last) else {
            throw StoreError(
                .value,
                "There is no column “\(name)” in what was read, and the property is not optional;"
                    + " there are \(source.names.joined(separator: ", ")).")
        }
        last = position
        return position
    }

    private func optionalPosition(_ key: Key) -> Int? {
        guard let position = source.position(of: key.stringValue, after: last) else { return nil }
        last = position
        return source.isNull(at: position) ? nil : position
    }

    private func read<Value: ColumnValue>(_ type: Value.Type, _ key: Key) throws -> Value {
        let position = try position(key)
        do {
            return try source.read(type, at: position)
        } catch let error as StoreError {
            throw error.naming(column: source.name(at: position))
        }
    }

    private func readIfPresent<Value: ColumnValue>(
        _ type: Value.Type, _ key: Key
    ) throws -> Value? {
        guard let position = optionalPosition(key) else { return nil }
        do {
            return try source.read(type, at: position)
        } catch let error as StoreError {
            throw error.naming(column: source.name(at: position))
        }
    }

    func decodeNil(forKey key: Key) throws -> Bool {
        // The position stays: the value is asked for next, by the same key.
        source.isNull(at: try source.position(of: key.stringValue, after: last) ?? position(key))
    }

    func decode<Property: Decodable>(_ type: Property.Type, forKey key: Key) throws -> Property {
        let position = try position(key)
        do {
            return try PropertyDecoder.decode(type, source: source, at: position)
        } catch let error as StoreError {
            throw error.naming(column: source.name(at: position))
        }
    }

    func decodeIfPresent<Property: Decodable>(
        _ type: Property.Type, forKey key: Key
    ) throws -> Property? {
        guard let position = optionalPosition(key) else { return nil }
        do {
            return try PropertyDecoder.decode(type, source: source, at: position)
        } catch let error as StoreError {
            throw error.naming(column: source.name(at: position))
        }
    }

    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try read(type, key) }
    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? {
        try readIfPresent(type, key)
    }
    func decode(_ type: String.Type, forKey key: Key) throws -> String { try read(type, key) }
    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
        try readIfPresent(type, key)
    }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try read(type, key) }
    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? {
        try readIfPresent(type, key)
    }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try read(type, key) }
    func decodeIfPresent(_ type: Float.Type, forKey key: Key) throws -> Float? {
        try readIfPresent(type, key)
    }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try read(type, key) }
    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? {
        try readIfPresent(type, key)
    }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try read(type, key) }
    func decodeIfPresent(_ type: Int8.Type, forKey key: Key) throws -> Int8? {
        try readIfPresent(type, key)
    }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try read(type, key) }
    func decodeIfPresent(_ type: Int16.Type, forKey key: Key) throws -> Int16? {
        try readIfPresent(type, key)
    }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try read(type, key) }
    func decodeIfPresent(_ type: Int32.Type, forKey key: Key) throws -> Int32? {
        try readIfPresent(type, key)
    }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try read(type, key) }
    func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? {
        try readIfPresent(type, key)
    }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try read(type, key) }
    func decodeIfPresent(_ type: UInt.Type, forKey key: Key) throws -> UInt? {
        try readIfPresent(type, key)
    }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try read(type, key) }
    func decodeIfPresent(_ type: UInt8.Type, forKey key: Key) throws -> UInt8? {
        try readIfPresent(type, key)
    }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try read(type, key) }
    func decodeIfPresent(_ type: UInt16.Type, forKey key: Key) throws -> UInt16? {
        try readIfPresent(type, key)
    }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try read(type, key) }
    func decodeIfPresent(_ type: UInt32.Type, forKey key: Key) throws -> UInt32? {
        try readIfPresent(type, key)
    }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try read(type, key) }
    func decodeIfPresent(_ type: UInt64.Type, forKey key: Key) throws -> UInt64? {
        try readIfPresent(type, key)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<Nested> {
        throw StoreError(.value, "A column holds one value; nested ones are stored as JSON.")
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        throw StoreError(.value, "A column holds one value; lists are stored as JSON.")
    }

    func superDecoder() -> any Decoder { NamedValuesDecoder(source) }
    func superDecoder(forKey key: Key) -> any Decoder { NamedValuesDecoder(source) }
}

extension DecodingError {
    /// Where it happened, for a sentence. Its own words may show values.
    fileprivate var place: String {
        let path =
            switch self {
            case .typeMismatch(_, let context), .valueNotFound(_, let context),
                .keyNotFound(_, let context), .dataCorrupted(let context):
                context.codingPath
            @unknown default: [any CodingKey]()
            }
        return path.isEmpty ? "" : " at “\(path.map(\.stringValue).joined(separator: "."))”"
    }
}
