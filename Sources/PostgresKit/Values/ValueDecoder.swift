/// Reads values from PostgreSQL's binary format.
enum ValueDecoder {
    /// Returns the value that the bytes hold.
    /// - Parameter bytes: One field of a result, or one element of an array.
    /// - Returns: The value; nil if the bytes are not of that type.
    static func value(
        _ bytes: UnsafeRawBufferPointer, of number: UInt32, _ types: TypeCatalogue
    ) -> PostgresValue? {
        var reader = BigEndianReader(bytes)
        let value: PostgresValue?
        switch types[number] {
        case .boolean: value = reader.take(UInt8.self).map { .boolean($0 != 0) }
        case .int2: value = reader.take(Int16.self).map { .integer(Int64($0)) }
        case .int4: value = reader.take(Int32.self).map { .integer(Int64($0)) }
        case .int8: value = reader.take(Int64.self).map { .integer($0) }
        case .unsigned: value = reader.take(UInt32.self).map { .integer(Int64($0)) }
        case .float4: value = reader.take(UInt32.self).map { .real(Float(bitPattern: $0)) }
        case .float8: value = reader.take(UInt64.self).map { .double(Double(bitPattern: $0)) }
        case .numeric: value = NumericText.read(&reader).map { .numeric($0) }
        case .text: value = .text(reader.rest())
        case .json: value = .json(reader.rest())
        case .jsonb:
            // A version precedes the text. It has always been 1.
            value = reader.take(UInt8.self) == 1 ? .json(reader.rest()) : nil
        case .uuid: value = uuid(reader.bytes(16)).map { .uuid($0) }
        case .bytea: value = .binary(reader.bytes(reader.count) ?? [])
        case .date: value = reader.take(Int32.self).map { .date(PostgresDate(days: $0)) }
        case .time:
            value = reader.take(Int64.self).map { .time(PostgresTime(microseconds: $0)) }
        case .timestamp:
            value = reader.take(Int64.self).map { .timestamp(PostgresTimestamp(microseconds: $0)) }
        case .timestamptz:
            value = reader.take(Int64.self).map {
                .timestamptz(PostgresTimestamp(microseconds: $0))
            }
        case .array: value = array(&reader, types)
        case .unknown:
            return .other(type: number, bytes: reader.bytes(reader.count) ?? [])
        }
        return reader.count == 0 ? value : nil
    }

    private static func uuid(_ bytes: [UInt8]?) -> String? {
        guard let bytes else { return nil }
        var text = PostgresValue.binary(bytes).text.map { Array($0.dropFirst(2)) } ?? []
        for position in [20, 16, 12, 8] { text.insert("-", at: position) }
        return String(text)
    }

    /// Reads an array: the number of dimensions, flags and the element type, then each dimension,
    /// then each element with its length.
    private static func array(
        _ reader: inout BigEndianReader, _ types: TypeCatalogue
    ) -> PostgresValue? {
        guard let dimensionCount = reader.take(Int32.self), (0...6).contains(dimensionCount),
            reader.take(Int32.self) != nil, let element = reader.take(UInt32.self)
        else { return nil }
        var dimensions: [PostgresArray.Dimension] = []
        var count = dimensionCount == 0 ? 0 : 1
        for _ in 0..<dimensionCount {
            guard let length = reader.take(Int32.self), length >= 0,
                let bound = reader.take(Int32.self)
            else { return nil }
            dimensions.append(.init(count: Int(length), lowerBound: Int(bound)))
            let (product, overflows) = count.multipliedReportingOverflow(by: Int(length))
            // Each element takes four bytes at least.
            guard !overflows, product <= reader.count else { return nil }
            count = product
        }
        var elements: [PostgresValue] = []
        elements.reserveCapacity(count)
        for _ in 0..<count {
            guard let length = reader.take(Int32.self) else { return nil }
            if length < 0 {
                elements.append(.null)
            } else if let bytes = reader.part(Int(length)),
                let value = value(bytes, of: element, types)
            {
                elements.append(value)
            } else {
                return nil
            }
        }
        return .array(PostgresArray(dimensions: dimensions, elements: elements))
    }
}

/// Reads big-endian numbers from bytes, one after another, and never past the end.
struct BigEndianReader {
    private var bytes: UnsafeRawBufferPointer

    init(_ bytes: UnsafeRawBufferPointer) {
        self.bytes = bytes
    }

    /// The number of bytes that are left.
    var count: Int { bytes.count }

    mutating func take<Number: FixedWidthInteger>(_ type: Number.Type) -> Number? {
        guard let part = part(MemoryLayout<Number>.size) else { return nil }
        return Number(bigEndian: part.loadUnaligned(as: Number.self))
    }

    mutating func bytes(_ count: Int) -> [UInt8]? {
        part(count).map { [UInt8]($0) }
    }

    /// Returns all bytes that are left, as text.
    mutating func rest() -> String {
        defer { bytes = UnsafeRawBufferPointer(start: nil, count: 0) }
        return String(decoding: bytes, as: UTF8.self)
    }

    mutating func part(_ count: Int) -> UnsafeRawBufferPointer? {
        guard count >= 0, count <= bytes.count else { return nil }
        let part = UnsafeRawBufferPointer(rebasing: bytes[..<count])
        bytes = UnsafeRawBufferPointer(rebasing: bytes[count...])
        return part
    }
}

/// Reads a numeric: groups of four digits, the weight of the first group, a sign, and the number of
/// digits after the point (`numeric_send` in PostgreSQL's numeric.c).
enum NumericText {
    static func read(_ reader: inout BigEndianReader) -> String? {
        guard let count = reader.take(UInt16.self), let weight = reader.take(Int16.self),
            let sign = reader.take(UInt16.self), let scale = reader.take(UInt16.self)
        else { return nil }
        var groups: [UInt16] = []
        for _ in 0..<count {
            guard let group = reader.take(UInt16.self), group < 10_000 else { return nil }
            groups.append(group)
        }
        switch sign {
        case 0xC000: return "NaN"
        case 0xD000: return "Infinity"
        case 0xF000: return "-Infinity"
        case 0, 0x4000: break
        default: return nil
        }
        func group(_ index: Int) -> UInt16 {
            groups.indices.contains(index) ? groups[index] : 0
        }
        var text = ""
        if weight < 0 {
            text = "0"
        } else {
            for index in 0...Int(weight) {
                text += index == 0 ? String(group(0)) : four(group(index))
            }
        }
        if scale > 0 {
            var fraction = ""
            // For negative indices there are zeros between the point and the first group.
            var index = Int(weight) + 1
            while fraction.utf8.count < Int(scale) {
                fraction += four(group(index))
                index += 1
            }
            text += "." + fraction.prefix(Int(scale))
        }
        return sign == 0x4000 ? "-" + text : text
    }

    private static func four(_ group: UInt16) -> String {
        let digits = String(group)
        return String(repeating: "0", count: 4 - digits.count) + digits
    }
}
