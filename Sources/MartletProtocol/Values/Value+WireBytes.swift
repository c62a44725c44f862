package import MartletModel

extension Value {
    /// The bytes of the encoded value; for a number, the most that it may take.
    package var wireByteCount: Int {
        switch self {
        case .null: 4
        case .boolean: 5
        case .integer: 20
        case .real: 24
        case .text(let text): 2 + Self.wireByteCount(of: text)
        }
    }

    /// Returns the bytes of an encoded text, without its quotes.
    static func wireByteCount(of text: String) -> Int {
        var count = 0
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), 0x08, 0x0C, 0x0A, 0x0D, 0x09: count += 2
            case 0..<0x20: count += 6
            default: count += 1
            }
        }
        return count
    }

    /// The most bytes that the encoded value may have, found without reading a text.
    fileprivate var mostWireBytes: Int {
        if case .text(let text) = self { return 2 + 6 * text.utf8.count }
        return 24
    }
}

extension Attributes {
    /// The bytes of the encoded attributes, without escapes in their names.
    package var wireByteCount: Int {
        zip(names, values).reduce(2) { $0 + $1.0.utf8.count + 4 + $1.1.wireByteCount }
    }

    /// The bytes that the attributes hold, found without reading a text. Encoded, they take at
    /// least as many.
    package var heldByteCount: Int {
        var count = 0
        for value in values {
            if case .text(let text) = value { count += text.utf8.count } else { count += 1 }
        }
        return count
    }

    /// Returns whether the encoded attributes take more than `bytes`. It reads texts only if the
    /// size is near that.
    package func exceeds(_ bytes: Int) -> Bool {
        var most = 2
        for (name, value) in zip(names, values) {
            most += name.utf8.count + 4 + value.mostWireBytes
        }
        return most > bytes && wireByteCount > bytes
    }
}

extension RecordID {
    /// The bytes that the encoded id takes where a record is listed and described.
    package var wireByteCount: Int {
        switch self {
        case .integer: 44
        case .text(let text): 8 + 2 * Value.wireByteCount(of: text)
        }
    }
}
