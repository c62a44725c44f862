/// Bytes as hexadecimal text and back.
public enum Hexadecimal {
    private static let digits = [UInt8]("0123456789abcdef".utf8)

    /// Returns two lower-case digits for each byte.
    public static func text(_ bytes: [UInt8]) -> String {
        String(unsafeUninitializedCapacity: bytes.count * 2) { buffer in
            var position = 0
            for byte in bytes {
                buffer[position] = digits[Int(byte >> 4)]
                buffer[position + 1] = digits[Int(byte & 15)]
                position += 2
            }
            return position
        }
    }

    /// Returns the bytes of an even number of digits of either case; nil for any other text.
    public static func bytes(_ text: String) -> [UInt8]? {
        let characters = [UInt8](text.utf8)
        guard characters.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(characters.count / 2)
        for position in stride(from: 0, to: characters.count, by: 2) {
            guard let high = value(characters[position]), let low = value(characters[position + 1])
            else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
