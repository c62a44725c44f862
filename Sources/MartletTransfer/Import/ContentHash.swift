import MartletModel

/// A hash that shows whether a source has changed since it was last read: FNV-1a of 64 bits
/// (Fowler, Noll, Vo).
struct ContentHash {
    private(set) var value: UInt64 = 0xcbf2_9ce4_8422_2325

    mutating func add(_ byte: UInt8) {
        value = (value ^ UInt64(byte)) &* 0x100_0000_01b3
    }

    /// Adds a text and an end mark.
    mutating func add(_ text: String) {
        for byte in text.utf8 { add(byte) }
        add(0xff as UInt8)
    }

    mutating func add(_ value: Value) {
        switch value {
        case .null: add(0xfe as UInt8)
        case .boolean(let flag): add(String(flag))
        case .integer(let number): add(String(number))
        case .real(let number): add(String(number.bitPattern))
        case .text(let text): add(text)
        }
    }
}
