/// The values of one statement, laid out as libpq expects them.
struct ParameterBuffer {
    /// The bytes of all values, one after another. A text ends with a zero.
    private var bytes: [UInt8] = []
    /// The offset of each value; nil for null.
    private var starts: [Int?] = []
    private(set) var lengths: [Int32] = []
    /// The format of each value: 1 for binary, 0 for text.
    private(set) var formats: [Int32] = []

    /// Lays out values for the types of their parameters.
    /// - Parameter types: The type of each parameter, as the server determined it.
    /// - Throws: `PostgresError` `.invalidValue` if a type cannot hold its value; `.misuse` if
    ///   there are more or fewer values than parameters.
    init(
        _ values: [PostgresValue], types: [UInt32], _ catalogue: TypeCatalogue, sql: String
    ) throws(PostgresError) {
        guard values.count == types.count else {
            throw PostgresError(
                .misuse, "\(types.count) values were expected, \(values.count) given", sql: sql)
        }
        for (index, value) in values.enumerated() {
            guard append(value, catalogue[types[index]], catalogue) else {
                throw PostgresError(
                    .invalidValue,
                    "the value of $\(index + 1) does not fit the parameter's type, or is text with a NUL",
                    sql: sql)
            }
        }
        // This byte gives an empty value at the end an address.
        bytes.append(0)
    }

    /// Calls `body` with the pointers that libpq expects.
    func withPointers<Result>(
        _ body: (
            Int32, UnsafePointer<UnsafePointer<CChar>?>?, UnsafePointer<Int32>?,
            UnsafePointer<Int32>?
        ) -> Result
    ) -> Result {
        bytes.withUnsafeBytes { all in
            let base = all.baseAddress?.assumingMemoryBound(to: CChar.self)
            let pointers = starts.map { start in start.flatMap { base?.advanced(by: $0) } }
            return pointers.withUnsafeBufferPointer { pointers in
                lengths.withUnsafeBufferPointer { lengths in
                    formats.withUnsafeBufferPointer { formats in
                        body(
                            Int32(pointers.count), pointers.baseAddress, lengths.baseAddress,
                            formats.baseAddress)
                    }
                }
            }
        }
    }

    private mutating func append(
        _ value: PostgresValue, _ type: WireType, _ catalogue: TypeCatalogue
    ) -> Bool {
        switch (value, type) {
        case (.null, _):
            begin(nil, 0)
        case (.boolean(let value), .boolean):
            append(value ? UInt8(1) : 0)
        case (.integer(let value), .int8):
            append(value)
        case (.integer(let value), .int4):
            guard let narrow = Int32(exactly: value) else { return false }
            append(narrow)
        case (.integer(let value), .int2):
            guard let narrow = Int16(exactly: value) else { return false }
            append(narrow)
        case (.integer(let value), .unsigned):
            guard let narrow = UInt32(exactly: value) else { return false }
            append(narrow)
        case (.real(let value), .float4):
            append(value.bitPattern)
        case (.double(let value), .float8):
            append(value.bitPattern)
        case (.binary(let value), .bytea):
            begin(bytes.count, 1)
            bytes += value
            lengths.append(Int32(clamping: value.count))
            return value.count <= Int(Int32.max)
        case (.date(let value), .date):
            append(value.days)
        case (.time(let value), .time):
            append(value.microseconds)
        case (.timestamp(let value), .timestamp), (.timestamptz(let value), .timestamptz):
            append(value.microseconds)
        case (.array(let array), .array(let element)):
            return append(array, element, catalogue) || append(text: value.text)
        case (.other(_, let value), .unknown):
            begin(bytes.count, 1)
            bytes += value
            lengths.append(Int32(clamping: value.count))
        case (.binary, let type) where type != .unknown:
            return false
        default:
            return append(text: value.text)
        }
        if value == .null { lengths.append(0) }
        return true
    }

    /// Appends an array in the binary format, which can carry the values of many rows in one
    /// statement.
    /// - Returns: False if an element has no binary form here. Nothing is appended then.
    private mutating func append(
        _ array: PostgresArray, _ number: UInt32, _ catalogue: TypeCatalogue
    ) -> Bool {
        let start = bytes.count
        put(Int32(array.dimensions.count))
        put(Int32(array.elements.contains(.null) ? 1 : 0))
        put(number)
        for dimension in array.dimensions {
            put(Int32(clamping: dimension.count))
            put(Int32(clamping: dimension.lowerBound))
        }
        let type = catalogue[number]
        for element in array.elements {
            guard put(element, type) else {
                bytes.removeSubrange(start...)
                return false
            }
        }
        guard let length = Int32(exactly: bytes.count - start) else {
            bytes.removeSubrange(start...)
            return false
        }
        begin(start, 1)
        lengths.append(length)
        return true
    }

    /// Appends an element: its length, then its bytes.
    private mutating func put(_ element: PostgresValue, _ type: WireType) -> Bool {
        switch (element, type) {
        case (.null, _):
            put(Int32(-1))
        case (.boolean(let value), .boolean):
            put(Int32(1))
            bytes.append(value ? 1 : 0)
        case (.integer(let value), .int8):
            put(Int32(8))
            put(value)
        case (.integer(let value), .int4):
            guard let narrow = Int32(exactly: value) else { return false }
            put(Int32(4))
            put(narrow)
        case (.integer(let value), .int2):
            guard let narrow = Int16(exactly: value) else { return false }
            put(Int32(2))
            put(narrow)
        case (.real(let value), .float4):
            put(Int32(4))
            put(value.bitPattern)
        case (.double(let value), .float8):
            put(Int32(8))
            put(value.bitPattern)
        case (.binary(let value), .bytea):
            guard let length = Int32(exactly: value.count) else { return false }
            put(length)
            bytes += value
        case (.text(let value), .text), (.json(let value), .json):
            let start = bytes.count
            put(Int32(0))
            bytes += value.utf8
            let count = bytes.count - start - 4
            guard let length = Int32(exactly: count), !bytes[(start + 4)...].contains(0) else {
                return false
            }
            for (offset, shift) in [24, 16, 8, 0].enumerated() {
                bytes[start + offset] = UInt8(truncatingIfNeeded: length >> Int32(shift))
            }
        default: return false
        }
        return true
    }

    private mutating func put(_ number: some FixedWidthInteger) {
        withUnsafeBytes(of: number.bigEndian) { bytes += $0 }
    }

    private mutating func append(text: String?) -> Bool {
        guard let text else { return false }
        let start = bytes.count
        bytes += text.utf8
        guard !bytes[start...].contains(0), bytes.count - start <= Int(Int32.max) else {
            return false
        }
        begin(start, 0)
        lengths.append(Int32(bytes.count - start))
        bytes.append(0)
        return true
    }

    private mutating func append(_ number: some FixedWidthInteger) {
        begin(bytes.count, 1)
        withUnsafeBytes(of: number.bigEndian) { bytes += $0 }
        lengths.append(Int32(number.bitWidth / 8))
    }

    private mutating func begin(_ start: Int?, _ format: Int32) {
        starts.append(start)
        formats.append(format)
    }
}
