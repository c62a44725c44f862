internal import Foundation

/// Decodes one property from one value.
enum PropertyDecoder {
    static func decode<Property: Decodable>(
        _ type: Property.Type, source: NamedValues, at position: Int
    ) throws -> Property {
        if let columnType = type as? any ColumnValue.Type {
            return try read(columnType, as: type, source: source, at: position)
        }
        let value = try source.value(at: position)
        do {
            return try Property(from: SingleValueDecoder(value: value))
        } catch is NotSingle {
            return try decodeJSON(type, value)
        } catch is DecodingError {
            // The error's own text may contain the value.
            throw StoreError(.value, "expected \(type), found \(value.kindName) that is none")
        }
    }

    private static func read<Value: ColumnValue, Property>(
        _ type: Value.Type, as property: Property.Type, source: NamedValues, at position: Int
    ) throws -> Property {
        guard let value = try source.read(type, at: position) as? Property else {
            throw StoreError(.value, "expected \(property)")
        }
        return value
    }

    private static func decodeJSON<Property: Decodable>(
        _ type: Property.Type, _ value: SQLValue
    ) throws -> Property {
        guard case .text(let text) = value else {
            throw StoreError(.value, "expected JSON text of \(type), found \(value.kindName)")
        }
        do {
            return try JSONDecoder().decode(type, from: Data(text.utf8))
        } catch {
            throw StoreError(.value, "expected JSON text of \(type)")
        }
    }

    /// A signal that the type asks for more than one value.
    struct NotSingle: Error {}
}

/// A decoder of a type that is one value, such as an enumeration with a raw value.
private struct SingleValueDecoder: Decoder, SingleValueDecodingContainer {
    let value: SQLValue

    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(
        keyedBy type: Key.Type
    ) throws -> KeyedDecodingContainer<Key> {
        throw PropertyDecoder.NotSingle()
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        throw PropertyDecoder.NotSingle()
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    func decodeNil() -> Bool { value.isNull }

    func decode<Property: Decodable>(_ type: Property.Type) throws -> Property {
        guard let columnType = type as? any ColumnValue.Type else {
            // The type wraps another type.
            return try Property(from: self)
        }
        guard let result = try columnType.init(sqlValue: value) as? Property else {
            throw StoreError(.value, "expected \(type)")
        }
        return result
    }
}
