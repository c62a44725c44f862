/// Base64 with padding (RFC 4648, section 4). Each byte string has exactly one text: a text that no
/// encoder makes is not decoded.
package enum Base64 {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let none: UInt8 = 0xff
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: none, count: 256)
        for (value, letter) in alphabet.enumerated() {
            values[Int(letter)] = UInt8(value)
        }
        return values
    }()

    package static func encode(_ bytes: [UInt8]) -> String {
        let alphabet = alphabet
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        var index = 0
        while index < bytes.count {
            let first = bytes[index]
            let second = index + 1 < bytes.count ? bytes[index + 1] : 0
            let third = index + 2 < bytes.count ? bytes[index + 2] : 0
            text.append(alphabet[Int(first >> 2)])
            text.append(alphabet[Int((first & 3) << 4 | second >> 4)])
            text.append(
                index + 1 < bytes.count
                    ? alphabet[Int((second & 15) << 2 | third >> 6)] : UInt8(ascii: "="))
            text.append(index + 2 < bytes.count ? alphabet[Int(third & 63)] : UInt8(ascii: "="))
            index += 3
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the bytes; nil if the text is not base64.
    /// - Complexity: O(*n*) in the length of the text.
    package static func decode(_ text: String) -> [UInt8]? {
        let text = Array(text.utf8)
        guard text.count.isMultiple(of: 4) else { return nil }
        guard !text.isEmpty else { return [] }
        let padding = text.suffix(2).count { $0 == UInt8(ascii: "=") }
        let values = values
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 4 * 3)
        var bits: UInt32 = 0
        for index in 0..<(text.count - padding) {
            let value = values[Int(text[index])]
            guard value != none else { return nil }
            bits = bits << 6 | UInt32(value)
            if index & 3 == 3 {
                bytes.append(UInt8(truncatingIfNeeded: bits >> 16))
                bytes.append(UInt8(truncatingIfNeeded: bits >> 8))
                bytes.append(UInt8(truncatingIfNeeded: bits))
                bits = 0
            }
        }
        switch padding {
        case 1:
            // "xxx=" has 18 bits, and the last two must be zero.
            guard text[text.count - 1] == UInt8(ascii: "="), bits & 3 == 0 else { return nil }
            bytes.append(UInt8(truncatingIfNeeded: bits >> 10))
            bytes.append(UInt8(truncatingIfNeeded: bits >> 2))
        case 2:
            // "xx==" has 12 bits, and the last four must be zero.
            guard bits & 15 == 0 else { return nil }
            bytes.append(UInt8(truncatingIfNeeded: bits >> 4))
        default: break
        }
        return bytes
    }
}
