import ConnectionKit

@testable import PostgresKit

/// Values in PostgreSQL's binary format. The first byte chooses the type.
enum ValuesTarget: FuzzTarget {
    static let name = "values"

    /// All types that are read, in a fixed order.
    static let types = WireType.builtIn.keys.sorted()

    static func check(_ input: [UInt8]) throws {
        guard let first = input.first else { return }
        let type = types[Int(first) % types.count]
        let catalogue = TypeCatalogue()
        guard let value = decoded(Array(input.dropFirst()), type, catalogue) else { return }
        let text = value.text
        try hold(text != nil, "a value of a known type has a text")
        // What has a binary form here is sent as it came.
        guard
            let parameter = try? ParameterBuffer([value], types: [type], catalogue, sql: ""),
            parameter.formats == [1]
        else { return }
        let sent = parameter.withPointers { _, pointers, lengths, _ in
            guard let start = pointers?[0], let length = lengths?[0] else { return [UInt8]() }
            return [UInt8](UnsafeRawBufferPointer(start: start, count: Int(length)))
        }
        let again = decoded(sent, type, catalogue)
        // Not a number is not equal to itself; its text is.
        try hold(
            again == value || again?.text == text, "a value is the same when sent and read again")
    }

    private static func decoded(
        _ bytes: [UInt8], _ type: UInt32, _ catalogue: TypeCatalogue
    ) -> PostgresValue? {
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        defer { copy.deallocate() }
        copy.copyBytes(from: bytes)
        return ValueDecoder.value(UnsafeRawBufferPointer(copy), of: type, catalogue)
    }
}
