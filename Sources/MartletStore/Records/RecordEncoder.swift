internal import Foundation

/// Turns an `Encodable` into values by name: one for each property, nulls included.
///
/// What is no value of a column itself (a list, a structure) is stored as its JSON text.
final class RecordEncoder: Encoder {
    var names: [String] = []
    var values: [SQLValue] = []
    /// Set when the value encodes as one value instead of by names.
    private(set) var single: SQLValue?
    private(set) var isList = false

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    /// The values of a record's properties.
    /// - Throws: `StoreError` `.value` for what has no properties.
    static func values(of record: some Encodable) throws -> RecordValues {
        let encoder = RecordEncoder()
        try record.encode(to: encoder)
        guard encoder.single == nil, !encoder.isList else {
            throw StoreError(
                .value, "\(type(of: record)) has no properties by name, so it is no record.")
        }
        return RecordValues(names: encoder.names, values: encoder.values)
    }

    /// One property's value.
    static func value<Property: Encodable>(_ property: Property) throws -> SQLValue {
        if let value = property as? any ColumnValue { return value.sqlValue }
        let encoder = RecordEncoder()
        try property.encode(to: encoder)
        if let single = encoder.single { return single }
        do {
            let json = JSONEncoder()
            json.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            return .text(String(decoding: try json.encode(property), as: UTF8.self))
        } catch {
            throw StoreError(.value, "\(Property.self) cannot be stored as JSON.")
        }
    }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(RecordEncodingContainer<Key>(encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        isList = true
        return DiscardingList()
    }

    func singleValueContainer() -> any SingleValueEncodingContainer {
        SingleEncodingContainer { self.single = $0 }
    }
}

/// The properties of a record.
private struct RecordEncodingContainer<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let encoder: RecordEncoder

    var codingPath: [any CodingKey] { [] }

    private func put(_ value: SQLValue, _ key: Key) {
        encoder.names.append(key.stringValue)
        encoder.values.append(value)
    }

    func encodeNil(forKey key: Key) { put(.null, key) }

    func encode<Property: Encodable>(_ value: Property, forKey key: Key) throws {
        put(try RecordEncoder.value(value), key)
    }

    func encodeIfPresent<Property: Encodable>(_ value: Property?, forKey key: Key) throws {
        put(try value.map { try RecordEncoder.value($0) } ?? .null, key)
    }

    func encode(_ value: Bool, forKey key: Key) { put(value.sqlValue, key) }
    func encodeIfPresent(_ value: Bool?, forKey key: Key) { put(value.sqlValue, key) }
    func encode(_ value: String, forKey key: Key) { put(value.sqlValue, key) }
    func encodeIfPresent(_ value: String?, forKey key: Key) { put(value.sqlValue, key) }
    func encode(_ value: Double, forKey key: Key) { put(value.sqlValue, key) }
    func encodeIfPresent(_ value: Double?, forKey key: Key) { put(value.sqlValue, key) }
    func encode(_ value: Float, forKey key: Key) { put(value.sqlValue, key) }
    func encodeIfPresent(_ value: Float?, forKey key: Key) { put(value.sqlValue, key) }
    func encode(_ value: Int, forKey key: Key) { put(value.sqlValue, key) }
    func encodeIfPresent(_ value: Int?, forKey key: Key) { put(value.sqlValue, key) }
    func encode(_ value: Int8, forKey key: Key) { put(value.sqlValue, key) }
    func encodeIfPresent(_ value: Int8?, forKey key: Key) { put(value.sqlValue, key) }
    func encode(_ value: Int16, forKey key: Key) { put(value.sqlValue, key) }
    func encodeIfPresent(_ value: Int16?, forKey key: Key) { put(value.sqlValue, key) }
    func encode(_ value: Int32, forKey key: Key) { put(value.sqlValue, key) }
    func encodeIfPresent(_ value: Int32?, forKey key: Key) { put(value.sqlValue, key) }
    func encode(_ value: Int64, forKey key: Key) { put(value.sqlValue, key) }
    func encodeIfPresent(_ value: Int64?, forKey key: Key) { put(value.sqlValue, key) }
    func encode(_ value: UInt, forKey key: Key) { put(value.sqlValue, key) }
    func encodeIfPresent(_ value: UInt?, forKey key: Key) { put(value.sqlValue, key) }
    func encode(_ value: UInt8, forKey key: Key) { put(value.sqlValue, key) }
    func encodeIfPresent(_ value: UInt8?, forKey key: Key) { put(value.sqlValue, key) }
    func encode(_ value: UInt16, forKey key: Key) { put(value.sqlValue, key) }
    func encodeIfPresent(_ value: UInt16?, forKey key: Key) { put(value.sqlValue, key) }
    func encode(_ value: UInt32, forKey key: Key) { put(value.sqlValue, key) }
    func encodeIfPresent(_ value: UInt32?, forKey key: Key) { put(value.sqlValue, key) }
    func encode(_ value: UInt64, forKey key: Key) { put(value.sqlValue, key) }
    func encodeIfPresent(_ value: UInt64?, forKey key: Key) { put(value.sqlValue, key) }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        // Only seen where a type asks for it by hand; such a property is stored as JSON.
        KeyedEncodingContainer(RecordEncodingContainer<Nested>(encoder: RecordEncoder()))
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        DiscardingList()
    }

    func superEncoder() -> any Encoder { encoder }
    func superEncoder(forKey key: Key) -> any Encoder { encoder }
}

/// A value that stands for itself.
private struct SingleEncodingContainer: SingleValueEncodingContainer {
    let put: (SQLValue) -> Void

    var codingPath: [any CodingKey] { [] }

    func encodeNil() { put(.null) }

    func encode<Property: Encodable>(_ value: Property) throws {
        put(try RecordEncoder.value(value))
    }
}

/// Takes a list's elements and forgets them: the list is stored as JSON.
private struct DiscardingList: UnkeyedEncodingContainer {
    var codingPath: [any CodingKey] { [] }
    var count: Int { 0 }

    func encodeNil() {}
    func encode<Property: Encodable>(_ value: Property) {}

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type
    ) -> KeyedEncodingContainer<Nested> {
        KeyedEncodingContainer(RecordEncodingContainer<Nested>(encoder: RecordEncoder()))
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { self }
    func superEncoder() -> any Encoder { RecordEncoder() }
}
