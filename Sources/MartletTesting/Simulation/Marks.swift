internal import MartletModel
internal import MartletStore

/// Texts that can be told apart wherever they are, as “‹17›” or “‹17.2›”. The first number is that of the
/// deed or the save.
enum Marks {
    /// Returns the marks in the texts of a record.
    static func found(in record: RecordValues) -> [String] {
        record.values.flatMap { value -> [String] in
            guard case .text(let text) = value else { return [] }
            return found(in: text.utf8)
        }
    }

    /// Returns the marks in the texts of a record.
    static func found(in record: [String: Value]) -> [String] {
        record.values.flatMap { value -> [String] in
            guard case .text(let text) = value else { return [] }
            return found(in: text.utf8)
        }
    }

    /// Returns the marks in bytes.
    static func found(in bytes: some Sequence<UInt8>) -> [String] {
        var marks: [String] = []
        var mark: [UInt8] = []
        // The bytes of the brackets that were met.
        var (opened, closed) = (0, 0)
        for byte in bytes {
            if opened < begin.count {
                opened = byte == begin[opened] ? opened + 1 : byte == begin[0] ? 1 : 0
                (mark, closed) = (begin, 0)
            } else if closed == 0, isNumber(byte) {
                mark.append(byte)
            } else if byte == end[closed] {
                closed += 1
                guard closed == end.count else { continue }
                marks.append(String(decoding: mark + end, as: UTF8.self))
                opened = 0
            } else if closed == 2, byte == begin[2] {
                // Both brackets begin with the same two bytes.
                (mark, closed) = (begin, 0)
            } else {
                opened = byte == begin[0] ? 1 : 0
            }
        }
        return marks
    }

    /// Returns the number with which a mark begins.
    static func number(of mark: String) -> Int? {
        Int(mark.dropFirst().prefix { $0.isNumber })
    }

    private static let begin = Array("‹".utf8)
    private static let end = Array("›".utf8)

    private static func isNumber(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: ".") || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }
}
