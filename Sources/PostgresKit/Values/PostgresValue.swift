/// An exact value of one of the types that the kit knows.
public enum PostgresValue: Hashable, Sendable {
    case null
    case boolean(Bool)
    /// A smallint, integer, bigint, oid or transaction id.
    case integer(Int64)
    case real(Float)
    case double(Double)
    /// The digits as PostgreSQL writes them, trailing zeros included, or `NaN` or `Infinity`.
    case numeric(String)
    /// A text, varchar, char, or a value of an enumeration.
    case text(String)
    /// A json as it was stored, or a jsonb as PostgreSQL writes it.
    case json(String)
    /// A UUID in lower case, with hyphens.
    case uuid(String)
    case binary([UInt8])
    case date(PostgresDate)
    case time(PostgresTime)
    case timestamp(PostgresTimestamp)
    /// A timestamp with time zone, in UTC.
    case timestamptz(PostgresTimestamp)
    case array(PostgresArray)
    /// A value of a type that the kit does not know, in PostgreSQL's binary format. Select
    /// `column::text` to read it.
    case other(type: UInt32, bytes: [UInt8])

    /// The value as PostgreSQL writes it in text, with UTC and ISO dates; nil for null, and for
    /// types that the kit does not know.
    /// - Complexity: O(*n*) in the bytes of the value.
    public var text: String? {
        switch self {
        case .null, .other: nil
        case .boolean(let value): value ? "t" : "f"
        case .integer(let value): String(value)
        case .real(let value): Self.text(value.description)
        case .double(let value): Self.text(value.description)
        case .numeric(let value), .text(let value), .json(let value), .uuid(let value): value
        case .binary(let bytes): Self.hexadecimal(bytes)
        case .date(let value): value.description
        case .time(let value): value.description
        case .timestamp(let value): value.description
        case .timestamptz(let value): value.text(zone: "+00")
        case .array(let value): value.literal
        }
    }

    /// Returns a number's text with Swift's names of infinities replaced by those that PostgreSQL
    /// reads.
    private static func text(_ number: String) -> String {
        switch number {
        case "inf": "Infinity"
        case "-inf": "-Infinity"
        case let other where other.hasSuffix("nan"): "NaN"
        default: number
        }
    }

    private static func hexadecimal(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = [UInt8(ascii: "\\"), UInt8(ascii: "x")]
        text.reserveCapacity(2 + bytes.count * 2)
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }
}

/// An array: its elements in row-major order, and its dimensions.
public struct PostgresArray: Hashable, Sendable {
    /// One dimension of an array.
    public struct Dimension: Hashable, Sendable {
        public let count: Int
        /// The index of the first element, which is 1 unless it was chosen differently.
        public let lowerBound: Int

        public init(count: Int, lowerBound: Int = 1) {
            self.count = count
            self.lowerBound = lowerBound
        }
    }

    /// The dimensions; none for an empty array.
    public let dimensions: [Dimension]
    public let elements: [PostgresValue]

    /// Makes an array of one dimension.
    public init(_ elements: [PostgresValue]) {
        self.init(
            dimensions: elements.isEmpty ? [] : [Dimension(count: elements.count)],
            elements: elements)
    }

    /// Makes an array with dimensions.
    /// - Precondition: There are as many elements as the dimensions say.
    public init(dimensions: [Dimension], elements: [PostgresValue]) {
        let count = dimensions.isEmpty ? 0 : dimensions.reduce(1) { $0 * $1.count }
        precondition(count == elements.count, "as many elements as the dimensions say")
        self.dimensions = dimensions
        self.elements = elements
    }

    /// The array as PostgreSQL reads it from text.
    var literal: String {
        guard !dimensions.isEmpty else { return "{}" }
        var text = ""
        if dimensions.contains(where: { $0.lowerBound != 1 }) {
            for dimension in dimensions {
                let last = dimension.lowerBound + dimension.count - 1
                text += "[\(dimension.lowerBound):\(last)]"
            }
            text += "="
        }
        var position = 0
        write(dimension: 0, &position, into: &text)
        return text
    }

    private func write(dimension: Int, _ position: inout Int, into text: inout String) {
        text += "{"
        for index in 0..<dimensions[dimension].count {
            if index > 0 { text += "," }
            if dimension + 1 < dimensions.count {
                write(dimension: dimension + 1, &position, into: &text)
            } else {
                text += Self.quoted(elements[position].text)
                position += 1
            }
        }
        text += "}"
    }

    private static func quoted(_ element: String?) -> String {
        guard let element else { return "NULL" }
        var text = "\""
        for character in element.unicodeScalars {
            if character == "\"" || character == "\\" { text += "\\" }
            text.unicodeScalars.append(character)
        }
        return text + "\""
    }
}
