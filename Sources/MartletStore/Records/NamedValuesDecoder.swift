/// A decoder that creates a record from values by name.
struct NamedValuesDecoder: Decoder {
    let source: NamedValues

    init(_ source: NamedValues) {
        self.source = source
    }

    func decode<Result: Decodable>(_ type: Result.Type) throws -> Result {
        do {
            return try Result(from: self)
        } catch let error as DecodingError {
            throw StoreError(.value, "\(type) cannot be made from what was read\(error.location).")
        }
    }

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
        source.begin()
        return source.container {
            KeyedDecodingContainer(NamedValuesContainer<Key>(source: source))
        }
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        throw StoreError(.value, "A row is read by names; the type asks for a list.")
    }

    func singleValueContainer() throws -> any SingleValueDecodingContainer {
        throw StoreError(.value, "A row is read by names; the type asks for one value.")
    }
}

/// The columns of a row, or the values of a record, as the properties of a type.
private struct NamedValuesContainer<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let source: NamedValues

    var codingPath: [any CodingKey] { [] }
    var allKeys: [Key] { source.names.compactMap { Key(stringValue: $0) } }

    func contains(_ key: Key) -> Bool { source.position(of: key.stringValue) != nil }

    func decodeNil(forKey key: Key) throws -> Bool {
        // The position stays, because the type reads the value next, with the same key.
        let name = key.stringValue
        return source.isNull(at: try source.position(of: name) ?? source.required(name))
    }

    func decode<Property: Decodable>(_ type: Property.Type, forKey key: Key) throws -> Property {
        try property(type, at: try source.required(key.stringValue))
    }

    func decodeIfPresent<Property: Decodable>(
        _ type: Property.Type, forKey key: Key
    ) throws -> Property? {
        try source.optional(key.stringValue).map { try property(type, at: $0) }
    }

    private func property<Property: Decodable>(
        _ type: Property.Type, at position: Int
    ) throws -> Property {
        do {
            return try PropertyDecoder.decode(type, source: source, at: position)
        } catch {
            throw source.named(error, position)
        }
    }

    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool {
        try source.flag(at: try source.required(key.stringValue))
    }
    func decodeIfPresent(_ type: Bool.Type, forKey key: Key) throws -> Bool? {
        try source.optional(key.stringValue).map { try source.flag(at: $0) }
    }
    func decode(_ type: String.Type, forKey key: Key) throws -> String {
        try source.string(at: try source.required(key.stringValue))
    }
    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
        try source.optional(key.stringValue).map { try source.string(at: $0) }
    }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double {
        try source.double(at: try source.required(key.stringValue))
    }
    func decodeIfPresent(_ type: Double.Type, forKey key: Key) throws -> Double? {
        try source.optional(key.stringValue).map { try source.double(at: $0) }
    }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float {
        Float(try source.double(at: try source.required(key.stringValue)))
    }
    func decodeIfPresent(_ type: Float.Type, forKey key: Key) throws -> Float? {
        try source.optional(key.stringValue).map { Float(try source.double(at: $0)) }
    }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int {
        try source.number(type, at: try source.required(key.stringValue))
    }
    func decodeIfPresent(_ type: Int.Type, forKey key: Key) throws -> Int? {
        try source.optional(key.stringValue).map { try source.number(type, at: $0) }
    }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 {
        try source.number(type, at: try source.required(key.stringValue))
    }
    func decodeIfPresent(_ type: Int8.Type, forKey key: Key) throws -> Int8? {
        try source.optional(key.stringValue).map { try source.number(type, at: $0) }
    }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 {
        try source.number(type, at: try source.required(key.stringValue))
    }
    func decodeIfPresent(_ type: Int16.Type, forKey key: Key) throws -> Int16? {
        try source.optional(key.stringValue).map { try source.number(type, at: $0) }
    }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 {
        try source.number(type, at: try source.required(key.stringValue))
    }
    func decodeIfPresent(_ type: Int32.Type, forKey key: Key) throws -> Int32? {
        try source.optional(key.stringValue).map { try source.number(type, at: $0) }
    }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 {
        try source.number(type, at: try source.required(key.stringValue))
    }
    func decodeIfPresent(_ type: Int64.Type, forKey key: Key) throws -> Int64? {
        try source.optional(key.stringValue).map { try source.number(type, at: $0) }
    }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt {
        try source.number(type, at: try source.required(key.stringValue))
    }
    func decodeIfPresent(_ type: UInt.Type, forKey key: Key) throws -> UInt? {
        try source.optional(key.stringValue).map { try source.number(type, at: $0) }
    }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 {
        try source.number(type, at: try source.required(key.stringValue))
    }
    func decodeIfPresent(_ type: UInt8.Type, forKey key: Key) throws -> UInt8? {
        try source.optional(key.stringValue).map { try source.number(type, at: $0) }
    }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 {
        try source.number(type, at: try source.required(key.stringValue))
    }
    func decodeIfPresent(_ type: UInt16.Type, forKey key: Key) throws -> UInt16? {
        try source.optional(key.stringValue).map { try source.number(type, at: $0) }
    }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 {
        try source.number(type, at: try source.required(key.stringValue))
    }
    func decodeIfPresent(_ type: UInt32.Type, forKey key: Key) throws -> UInt32? {
        try source.optional(key.stringValue).map { try source.number(type, at: $0) }
    }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 {
        try source.number(type, at: try source.required(key.stringValue))
    }
    func decodeIfPresent(_ type: UInt64.Type, forKey key: Key) throws -> UInt64? {
        try source.optional(key.stringValue).map { try source.number(type, at: $0) }
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
    /// The location of the error, for use in a sentence. The error's own text may contain values.
    fileprivate var location: String {
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
