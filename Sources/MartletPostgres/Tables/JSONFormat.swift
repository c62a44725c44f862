/// Detects JSON texts that would cost PostgreSQL far too much memory or stack.
enum JSONFormat {
    /// The most nested levels. PostgreSQL has no stack for some tens of thousands.
    static let mostDepth = 2_000
    /// The most digits of a text's numbers with their exponents written out: this multiple of its
    /// bytes, plus this number.
    private static let mostDigits = (times: 16, more: 512)

    /// Returns why a text is refused; nil if it is accepted.
    /// - Parameter expands: Whether PostgreSQL stores numbers with their exponents written out, as
    ///   jsonb does. A number of eight bytes can then take 131 kB.
    /// - Complexity: O(*n*) in the bytes of the text.
    static func fault(of text: String, expands: Bool) -> String? {
        var depth = 0
        var digits = 0
        var bytes = text.utf8.makeIterator()
        var before: UInt8 = 0
        var next = bytes.next()
        while let byte = next {
            next = bytes.next()
            switch byte {
            case UInt8(ascii: "\""): next = afterString(next, &bytes)
            case UInt8(ascii: "["), UInt8(ascii: "{"): depth += 1
            case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
            case UInt8(ascii: "e"), UInt8(ascii: "E"):
                if isDigit(before) || before == UInt8(ascii: ".") {
                    digits += exponent(&next, &bytes)
                }
            default: break
            }
            before = byte
            guard depth <= mostDepth else {
                return "expected JSON of at most \(mostDepth) levels, found more"
            }
        }
        guard expands, digits > mostDigits.times * text.utf8.count + mostDigits.more else {
            return nil
        }
        return "expected JSON without such large exponents, found \(digits) digits in a short text"
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }

    /// Returns the byte after the rest of a string.
    private static func afterString(
        _ first: UInt8?, _ bytes: inout String.UTF8View.Iterator
    ) -> UInt8? {
        var next = first
        while let byte = next {
            next = bytes.next()
            if byte == UInt8(ascii: "\"") { break }
            if byte == UInt8(ascii: "\\") { next = bytes.next() }
        }
        return next
    }

    /// Returns the size of the exponent that begins here, without its sign.
    private static func exponent(
        _ next: inout UInt8?, _ bytes: inout String.UTF8View.Iterator
    ) -> Int {
        if next == UInt8(ascii: "-") || next == UInt8(ascii: "+") { next = bytes.next() }
        var size = 0
        while let byte = next, isDigit(byte) {
            size = min(10 * size + Int(byte - UInt8(ascii: "0")), 1_000_000)
            next = bytes.next()
        }
        return size
    }
}
