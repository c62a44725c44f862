/// Strict Base64 with `-` and `_` and without padding (RFC 7515, section 2).
enum Base64URL {
    /// Returns the bytes of a text; nil unless the text is the one encoding of these bytes.
    static func bytes(_ text: some Sequence<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        var bits: UInt32 = 0
        var count = 0
        for character in text {
            guard let value = value(character) else { return nil }
            bits = bits << 6 | value
            count += 6
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
                bits &= 1 << UInt32(count) - 1
            }
        }
        // A single character is too little for a byte, and the remaining bits must be zero.
        return count < 6 && bits == 0 ? bytes : nil
    }

    private static func value(_ character: UInt8) -> UInt32? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character - UInt8(ascii: "0")) + 52
        case UInt8(ascii: "-"): 62
        case UInt8(ascii: "_"): 63
        default: nil
        }
    }
}
