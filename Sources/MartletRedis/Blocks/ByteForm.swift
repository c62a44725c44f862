/// Writes numbers and texts as bytes. A number takes seven bits in each byte, the low ones first.
struct ByteWriter {
    private(set) var bytes: [UInt8] = []

    init(reserving capacity: Int = 0) {
        bytes.reserveCapacity(capacity)
    }

    mutating func number(_ number: UInt64) {
        var rest = number
        while rest > 0x7f {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    mutating func number(_ number: Int64) {
        self.number(UInt64(bitPattern: number))
    }

    mutating func number(_ number: Int) {
        self.number(UInt64(number))
    }

    /// Writes bytes whose length the reader knows.
    mutating func raw(_ part: [UInt8]) {
        bytes.append(contentsOf: part)
    }

    mutating func counted(_ part: [UInt8]) {
        number(part.count)
        raw(part)
    }

    /// Writes a text. Nil differs from the empty text.
    mutating func text(_ text: String?) {
        guard let text else { return number(0) }
        number(text.utf8.count + 1)
        bytes.append(contentsOf: text.utf8)
    }
}

/// Reads the output of `ByteWriter`, and returns nil for anything else.
struct ByteReader {
    private let bytes: [UInt8]
    private var position: Int

    init(_ bytes: [UInt8], from position: Int = 0) {
        self.bytes = bytes
        self.position = position
    }

    var isAtEnd: Bool { position == bytes.count }

    mutating func number() -> UInt64? {
        var number: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 70, by: 7) {
            guard position < bytes.count else { return nil }
            let byte = bytes[position]
            position += 1
            // The tenth byte holds the one remaining bit.
            guard shift < 63 || byte <= 1 else { return nil }
            number |= UInt64(byte & 0x7f) << shift
            if byte & 0x80 == 0 { return number }
        }
        return nil
    }

    mutating func integer() -> Int64? {
        number().map { Int64(bitPattern: $0) }
    }

    /// Returns a number that can be a count of remaining bytes or members; nil for a larger one.
    mutating func count() -> Int? {
        guard let number = number(), number <= UInt64(bytes.count - position) else { return nil }
        return Int(number)
    }

    mutating func raw(_ count: Int) -> [UInt8]? {
        guard count >= 0, count <= bytes.count - position else { return nil }
        defer { position += count }
        return Array(bytes[position..<(position + count)])
    }

    mutating func counted() -> [UInt8]? {
        count().flatMap { raw($0) }
    }

    /// Returns a text. The outer nil means that there is no text at all.
    mutating func text() -> String?? {
        guard let number = number() else { return nil }
        guard number > 0 else { return .some(nil) }
        guard number - 1 <= UInt64(bytes.count - position), let part = raw(Int(number - 1)),
            let text = String(validating: part, as: UTF8.self)
        else { return nil }
        return .some(text)
    }
}
