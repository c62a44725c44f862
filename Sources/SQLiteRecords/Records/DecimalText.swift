/// Decimal numbers as text, the form in which the wire carries NUMERIC columns.
///
/// SQLite stores a value of such a column as a 64-bit integer if it is one, else as a double, which
/// holds 15 significant decimal digits (https://sqlite.org/datatype3.html#type_affinity). A number
/// with more digits is refused here, so that none is ever rounded silently.
package enum DecimalText {
    static let significantDigits = 15
    private static let longest = 64
    private static let longestKept = 1_000

    /// Returns nil if the text is a decimal number that the storage keeps exactly, else a sentence.
    /// - Parameter keepsDigits: Whether the column stores the number as its text.
    package static func mismatch(_ text: String, keepsDigits: Bool = false) -> String? {
        let bytes = Array(text.utf8)
        let longest = keepsDigits ? longestKept : longest
        let shape = "expected a decimal number such as “-12.5”, found other text"
        guard bytes.count <= longest else { return "expected a decimal number, found longer text" }
        var index = bytes.first == UInt8(ascii: "-") ? 1 : 0
        var digits: [UInt8] = []
        var wholeDigits = 0
        var point = false
        while index < bytes.count {
            let byte = bytes[index]
            if byte == UInt8(ascii: "."), !point, wholeDigits > 0 {
                point = true
            } else if (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) {
                digits.append(byte)
                wholeDigits += point ? 0 : 1
            } else {
                return shape
            }
            index += 1
        }
        let hasFraction = digits.count > wholeDigits
        guard wholeDigits > 0, !point || hasFraction else { return shape }
        if keepsDigits { return nil }
        let zero = UInt8(ascii: "0")
        while hasFraction, digits.count > wholeDigits, digits.last == zero { digits.removeLast() }
        if digits.count == wholeDigits, Int64(text.prefix { $0 != "." }) != nil { return nil }
        while digits.last == zero { digits.removeLast() }
        let significant = digits.drop { $0 == zero }.count
        guard significant <= significantDigits else {
            return """
                expected a decimal number of at most \(significantDigits) significant digits, \
                found \(significant)
                """
        }
        return nil
    }

    /// Returns whether a double holds the number that a text of digits and at most one point
    /// represents, without losing a digit.
    package static func isExact(_ text: String) -> Bool {
        guard let number = Double(text), number.isFinite else { return false }
        let isNegative = text.hasPrefix("-")
        let digits = isNegative ? text.dropFirst() : text[...]
        let whole = (isNegative ? "-" : "") + (digits.hasPrefix(".") ? "0" + digits : digits)
        return canonical(whole) == self.text(number)
    }

    /// Returns a decimal number without the parts that do not count: zeros at its start and end, a
    /// point without digits after it, the sign of zero. Any other text stays as it is.
    static func canonical(_ text: String) -> String {
        let bytes = Array(text.utf8)
        let zero = UInt8(ascii: "0")
        let isNegative = bytes.first == UInt8(ascii: "-")
        let parts = bytes.dropFirst(isNegative ? 1 : 0)
            .split(separator: UInt8(ascii: "."), maxSplits: 2, omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count),
            parts.allSatisfy({ part in
                !part.isEmpty && part.allSatisfy { (zero...UInt8(ascii: "9")).contains($0) }
            })
        else { return text }
        var whole = parts[0].drop { $0 == zero }
        if whole.isEmpty { whole = [zero] }
        var fraction = parts.count > 1 ? parts[1] : []
        while fraction.last == zero { fraction.removeLast() }
        let isZero = fraction.isEmpty && whole.elementsEqual([zero])
        let sign = isNegative && !isZero ? "-" : ""
        let point = fraction.isEmpty ? "" : "."
        return sign + String(decoding: whole, as: UTF8.self) + point
            + String(decoding: fraction, as: UTF8.self)
    }

    /// Returns the shortest decimal text of a finite double, without an exponent.
    package static func text(_ number: Double) -> String {
        var shortest = number.description
        if shortest.hasSuffix(".0") { shortest.removeLast(2) }
        guard let mark = shortest.firstIndex(of: "e") else {
            return shortest == "-0" ? "0" : shortest
        }
        let exponent = Int(shortest[shortest.index(after: mark)...]) ?? 0
        var mantissa = String(shortest[..<mark])
        let sign = mantissa.hasPrefix("-") ? "-" : ""
        mantissa.removeAll { $0 == "-" }
        let parts = mantissa.split(separator: ".", omittingEmptySubsequences: false)
        let whole = String(parts[0])
        let fraction = parts.count > 1 ? String(parts[1]) : ""
        let digits = whole + fraction
        let position = whole.count + exponent
        if position <= 0 {
            return sign + "0." + String(repeating: "0", count: -position) + digits
        }
        if position >= digits.count {
            return sign + digits + String(repeating: "0", count: position - digits.count)
        }
        return sign + digits.prefix(position) + "." + digits.dropFirst(position)
    }
}
