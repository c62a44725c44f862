/// A text in the input: the bytes between the quotes.
struct TextToken {
    var start: Int
    var end: Int
    /// Whether it contains a backslash.
    var isEscaped: Bool

    var count: Int { end - start }
}

extension JSONReader {
    /// Passes a text, and checks all of it. The cursor must be at the opening quote.
    mutating func scanText() throws(WireFault) -> TextToken {
        let start = position + 1
        var index = start
        var isEscaped = false
        while index < bytes.count {
            let byte = bytes[index]
            if byte >= 0x80 {
                index += try multibyteCount(at: index)
            } else if byte == UInt8(ascii: "\"") {
                position = index + 1
                return TextToken(start: start, end: index, isEscaped: isEscaped)
            } else if byte == UInt8(ascii: "\\") {
                isEscaped = true
                index = try endOfEscape(at: index)
            } else if byte < 0x20 {
                throw WireFault("A control character stands unescaped in a text.", at: index)
            } else {
                index += 1
            }
        }
        throw WireFault("The document ends inside a text.", at: bytes.count)
    }

    /// Returns the text of a token.
    func text(of token: TextToken) -> String {
        guard token.isEscaped else {
            return String(decoding: bytes[token.start..<token.end], as: UTF8.self)
        }
        return String(decoding: unescaped(token), as: UTF8.self)
    }

    /// Returns whether a token without escapes equals a text, byte for byte.
    func isSame(_ token: TextToken, as text: String) -> Bool {
        guard !token.isEscaped, text.utf8.count == token.count else { return false }
        var index = token.start
        for byte in text.utf8 {
            guard bytes[index] == byte else { return false }
            index += 1
        }
        return true
    }

    /// Returns the integer that a member name represents; nil unless it is written in the one way
    /// of integers: no leading zeros, no plus sign, no minus zero, within 64 bits.
    func integer(of token: TextToken) -> Int64? {
        guard token.count > 0, token.count <= 20 else { return nil }
        var index = token.start
        let isNegative = bytes[index] == UInt8(ascii: "-")
        if isNegative { index += 1 }
        guard index < token.end, bytes[index] != UInt8(ascii: "0") || token.count == 1 else {
            return nil
        }
        var number: Int64 = 0
        while index < token.end {
            let digit = bytes[index] &- UInt8(ascii: "0")
            guard digit <= 9 else { return nil }
            let (tenfold, overflow) = number.multipliedReportingOverflow(by: 10)
            let (next, carry) =
                isNegative
                ? tenfold.subtractingReportingOverflow(Int64(digit))
                : tenfold.addingReportingOverflow(Int64(digit))
            guard !overflow, !carry else { return nil }
            number = next
            index += 1
        }
        return number
    }

    /// Passes the quoted text at the cursor if it equals the one at an earlier position, byte for
    /// byte.
    /// - Parameter earlier: The earlier text without its quotes; already checked.
    mutating func passRepetition(of earlier: TextToken) -> Bool {
        let end = position + 1 + earlier.count
        guard end < bytes.count, bytes[end] == UInt8(ascii: "\""),
            bytes[position] == UInt8(ascii: "\"")
        else { return false }
        var here = position + 1
        var there = earlier.start
        while there < earlier.end {
            guard bytes[here] == bytes[there] else { return false }
            here += 1
            there += 1
        }
        position = end + 1
        return true
    }
}

// MARK: - UTF-8

extension JSONReader {
    /// Returns the number of bytes of the character that starts here with a byte of 0x80 or more.
    /// Checks it by table 3-7 of the Unicode Standard: no overlong forms, no surrogates, nothing
    /// beyond U+10FFFF.
    func multibyteCount(at index: Int) throws(WireFault) -> Int {
        let first = bytes[index]
        let second: UInt8 = index + 1 < bytes.count ? bytes[index + 1] : 0
        let isSound: Bool
        let count: Int
        switch first {
        case 0xC2...0xDF: (isSound, count) = (second & 0xC0 == 0x80, 2)
        case 0xE0: (isSound, count) = ((0xA0...0xBF).contains(second), 3)
        case 0xED: (isSound, count) = ((0x80...0x9F).contains(second), 3)
        case 0xE1...0xEF: (isSound, count) = (second & 0xC0 == 0x80, 3)
        case 0xF0: (isSound, count) = ((0x90...0xBF).contains(second), 4)
        case 0xF1...0xF3: (isSound, count) = (second & 0xC0 == 0x80, 4)
        case 0xF4: (isSound, count) = ((0x80...0x8F).contains(second), 4)
        default: (isSound, count) = (false, 1)
        }
        guard isSound, index + count <= bytes.count else { throw notUTF8(at: index) }
        for later in index + 2..<max(index + 2, index + count)
        where bytes[later] & 0xC0 != 0x80 {
            throw notUTF8(at: index)
        }
        return count
    }

    private func notUTF8(at index: Int) -> WireFault {
        WireFault("A text is not UTF-8.", at: index)
    }
}

// MARK: - Escapes

extension JSONReader {
    /// Returns the position after the escape that starts here, and checks the escape.
    private func endOfEscape(at index: Int) throws(WireFault) -> Int {
        guard index + 1 < bytes.count else {
            throw WireFault("The document ends inside a text.", at: bytes.count)
        }
        switch bytes[index + 1] {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"),
            UInt8(ascii: "f"), UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            return index + 2
        case UInt8(ascii: "u"):
            guard let unit = codeUnit(at: index + 2) else {
                throw WireFault("Expected four hexadecimal digits after \\u.", at: index)
            }
            guard 0xD800...0xDFFF ~= unit else { return index + 6 }
            guard unit < 0xDC00, index + 7 < bytes.count, bytes[index + 6] == UInt8(ascii: "\\"),
                bytes[index + 7] == UInt8(ascii: "u"), let low = codeUnit(at: index + 8),
                0xDC00...0xDFFF ~= low
            else {
                throw WireFault("A surrogate stands without its other half.", at: index)
            }
            return index + 12
        default:
            throw WireFault("A text has an escape JSON does not know.", at: index)
        }
    }

    /// Returns the number that four hexadecimal digits represent.
    private func codeUnit(at index: Int) -> UInt32? {
        guard index + 4 <= bytes.count else { return nil }
        var unit: UInt32 = 0
        for offset in 0..<4 {
            let byte = bytes[index + offset]
            let digit: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
            default: return nil
            }
            unit = unit << 4 | UInt32(digit)
        }
        return unit
    }

    /// Returns the bytes that a checked token with escapes represents.
    private func unescaped(_ token: TextToken) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(token.count)
        var index = token.start
        while index < token.end {
            let byte = bytes[index]
            guard byte == UInt8(ascii: "\\") else {
                result.append(byte)
                index += 1
                continue
            }
            let letter = bytes[index + 1]
            index += 2
            switch letter {
            case UInt8(ascii: "b"): result.append(0x08)
            case UInt8(ascii: "f"): result.append(0x0C)
            case UInt8(ascii: "n"): result.append(0x0A)
            case UInt8(ascii: "r"): result.append(0x0D)
            case UInt8(ascii: "t"): result.append(0x09)
            case UInt8(ascii: "u"):
                let (scalar, length) = character(at: index)
                result.append(contentsOf: Character(scalar).utf8)
                index += length
            default: result.append(letter)
            }
        }
        return result
    }

    /// Returns the character of a checked `\u` escape whose digits start here, and the number of
    /// bytes that it takes from here.
    private func character(at index: Int) -> (Unicode.Scalar, Int) {
        let replacement: Unicode.Scalar = "\u{FFFD}"
        guard let unit = codeUnit(at: index) else { return (replacement, 4) }
        guard 0xD800...0xDBFF ~= unit, let low = codeUnit(at: index + 6) else {
            return (Unicode.Scalar(unit) ?? replacement, 4)
        }
        let value = 0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00)
        return (Unicode.Scalar(value) ?? replacement, 10)
    }
}
