/// Encodes a secret's name in plain characters, for storage that treats some characters or
/// spellings alike.
///
/// Lower-case letters, digits, “-”, “_” and “.” stand for themselves. Every other byte becomes “%”
/// and two hexadecimal digits. Upper-case letters do too, because some file systems do not
/// distinguish them from lower-case ones, and so does a “.” at the beginning. Therefore no name
/// leads out of a folder, and no two names collide.
enum EncodedName {
    private static let digits = Array("0123456789abcdef".utf8)

    static func encoded(_ name: String) -> String {
        var bytes: [UInt8] = []
        for byte in name.utf8 {
            if isPlain(byte), !(bytes.isEmpty && byte == UInt8(ascii: ".")) {
                bytes.append(byte)
            } else {
                bytes += [
                    UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)],
                ]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns the name; nil if `encoded` cannot have made the text.
    static func decoded(_ text: String) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst().flatMap(digits.firstIndex(of:)),
                let low = rest.popFirst().flatMap(digits.firstIndex(of:))
            else { return nil }
            bytes.append(UInt8(high << 4 | low))
        }
        guard let name = String(validating: bytes, as: UTF8.self), !name.isEmpty,
            encoded(name) == text
        else { return nil }
        return name
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
            true
        default: false
        }
    }
}
