internal import Foundation

/// Encodes an `Encodable` as values by name, one for each property, nulls included.
///
/// A property that no column can hold, such as a list or a structure, becomes JSON text.
///
/// The methods that take values are not generic. The container that calls them is generic over the
/// keys of the app's type, so they could not be specialised here.
class RecordEncoder: Encoder {
    private(set) final var names: [String] = []
    private(set) final var values: [SQLValue] = []
    /// The value, if the type encodes itself as one value instead of by names.
    private(set) final var single: SQLValue?
    private(set) final var isList = false

    /// The container of the last type, if this object encodes many records. The container refers to
    /// this object, so `forgetContainer` must break the cycle.
    private final var container: AnyObject?

    /// Whether this object encodes many records.
    var keepsContainer: Bool { false }

    /// Releases the container.
    final func forgetContainer() { container = nil }

    func put(_ value: SQLValue, _ name: String) {
        names.append(name)
        values.append(value)
    }

    func putNull(_ name: String) { put(.null, name) }
    func put(integer: Int64, _ name: String) { put(.integer(integer), name) }
    func put(real: Double, _ name: String) { put(real.sqlValue, name) }
    func put(text: String, _ name: String) { put(.text(text), name) }

    final func put<Number: FixedWidthInteger & ColumnValue>(number: Number, _ name: String) {
        if let integer = Int64(exactly: number) {
            put(integer: integer, name)
        } else {
            put(number.sqlValue, name)
        }
    }

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    /// Returns the values of a record's properties.
    /// - Throws: `StoreError` `.value` if the type has no properties by name.
    static func values(of record: some Encodable) throws -> RecordValues {
        let encoder = RecordEncoder()
        try record.encode(to: encoder)
        guard encoder.single == nil, !encoder.isList else {
            throw StoreError(
                .value, "\(type(of: record)) has no properties by name, so it is no record.")
        }
        return RecordValues(names: encoder.names, values: encoder.values)
    }

    /// Returns the value of one property.
    /// - Throws: `StoreError` `.value` if the property cannot be stored as JSON.
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

    final func container<Key: CodingKey>(
        keyedBy type: Key.Type
    ) -> KeyedEncodingContainer<Key> {
        if let kept = container as? KeptContainer<KeyedEncodingContainer<Key>> {
            return kept.container
        }
        let made = KeyedEncodingContainer(RecordEncodingContainer<Key>(encoder: self))
        if keepsContainer { container = KeptContainer(made) }
        return made
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

    func encodeNil(forKey key: Key) { encoder.putNull(key.stringValue) }

    func encode<Property: Encodable>(_ value: Property, forKey key: Key) throws {
        encoder.put(try RecordEncoder.value(value), key.stringValue)
    }

    func encodeIfPresent<Property: Encodable>(_ value: Property?, forKey key: Key) throws {
        encoder.put(try value.map { try RecordEncoder.value($0) } ?? .null, key.stringValue)
    }

    func encode(_ value: Bool, forKey key: Key) {
        encoder.put(integer: value ? 1 : 0, key.stringValue)
    }
    func encodeIfPresent(_ value: Bool?, forKey key: Key) {
        guard let value else { return encodeNil(forKey: key) }
        encode(value, forKey: key)
    }
    func encode(_ value: String, forKey key: Key) {
        encoder.put(text: value, key.stringValue)
    }
    func encodeIfPresent(_ value: String?, forKey key: Key) {
        guard let value else { return encodeNil(forKey: key) }
        encode(value, forKey: key)
    }
    func encode(_ value: Double, forKey key: Key) {
        encoder.put(real: value, key.stringValue)
    }
    func encodeIfPresent(_ value: Double?, forKey key: Key) {
        guard let value else { return encodeNil(forKey: key) }
        encode(value, forKey: key)
    }
    func encode(_ value: Float, forKey key: Key) {
        encoder.put(real: Double(value), key.stringValue)
    }
    func encodeIfPresent(_ value: Float?, forKey key: Key) {
        guard let value else { return encodeNil(forKey: key) }
        encode(value, forKey: key)
    }
    func encode(_ value: Int, forKey key: Key) {
        encoder.put(number: value, key.stringValue)
    }
    func encodeIfPresent(_ value: Int?, forKey key: Key) {
        guard let value else { return encodeNil(forKey: key) }
        encode(value, forKey: key)
    }
    func encode(_ value: Int8, forKey key: Key) {
        encoder.put(number: value, key.stringValue)
    }
    func encodeIfPresent(_ value: Int8?, forKey key: Key) {
        guard let value else { return encodeNil(forKey: key) }
        encode(value, forKey: key)
    }
    func encode(_ value: Int16, forKey key: Key) {
        encoder.put(number: value, key.stringValue)
    }
    func encodeIfPresent(_ value: Int16?, forKey key: Key) {
        guard let value else { return encodeNil(forKey: key) }
        encode(value, forKey: key)
    }
    func encode(_ value: Int32, forKey key: Key) {
        encoder.put(number: value, key.stringValue)
    }
    func encodeIfPresent(_ value: Int32?, forKey key: Key) {
        guard let value else { return encodeNil(forKey: key) }
        encode(value, forKey: key)
    }
    func encode(_ value: Int64, forKey key: Key) {
        encoder.put(number: value, key.stringValue)
    }
    func encodeIfPresent(_ value: Int64?, forKey key: Key) {
        guard let value else { return encodeNil(forKey: key) }
        encode(value, forKey: key)
    }
    func encode(_ value: UInt, forKey key: Key) {
        encoder.put(number: value, key.stringValue)
    }
    func encodeIfPresent(_ value: UInt?, forKey key: Key) {
        guard let value else { return encodeNil(forKey: key) }
        encode(value, forKey: key)
    }
    func encode(_ value: UInt8, forKey key: Key) {
        encoder.put(number: value, key.stringValue)
    }
    func encodeIfPresent(_ value: UInt8?, forKey key: Key) {
        guard let value else { return encodeNil(forKey: key) }
        encode(value, forKey: key)
    }
    func encode(_ value: UInt16, forKey key: Key) {
        encoder.put(number: value, key.stringValue)
    }
    func encodeIfPresent(_ value: UInt16?, forKey key: Key) {
        guard let value else { return encodeNil(forKey: key) }
        encode(value, forKey: key)
    }
    func encode(_ value: UInt32, forKey key: Key) {
        encoder.put(number: value, key.stringValue)
    }
    func encodeIfPresent(_ value: UInt32?, forKey key: Key) {
        guard let value else { return encodeNil(forKey: key) }
        encode(value, forKey: key)
    }
    func encode(_ value: UInt64, forKey key: Key) {
        encoder.put(number: value, key.stringValue)
    }
    func encodeIfPresent(_ value: UInt64?, forKey key: Key) {
        guard let value else { return encodeNil(forKey: key) }
        encode(value, forKey: key)
    }

    func nestedContainer<Nested: CodingKey>(
        keyedBy type: Nested.Type, forKey key: Key
    ) -> KeyedEncodingContainer<Nested> {
        // Only a type that encodes itself by hand asks for this. Its property is stored as JSON.
        KeyedEncodingContainer(RecordEncodingContainer<Nested>(encoder: RecordEncoder()))
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        DiscardingList()
    }

    func superEncoder() -> any Encoder { encoder }
    func superEncoder(forKey key: Key) -> any Encoder { encoder }
}

/// A container that takes one value.
private struct SingleEncodingContainer: SingleValueEncodingContainer {
    let put: (SQLValue) -> Void

    var codingPath: [any CodingKey] { [] }

    func encodeNil() { put(.null) }

    func encode<Property: Encodable>(_ value: Property) throws {
        put(try RecordEncoder.value(value))
    }
}

/// A container that discards a list's elements, because the list is stored as JSON.
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
