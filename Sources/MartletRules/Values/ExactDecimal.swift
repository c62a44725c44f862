/// A decimal number of any length, for comparisons: the digits of a text such as “-12.50”.
///
/// Equal numbers are equal values: there are no zeros at the ends.
struct ExactDecimal: Hashable, Sendable, Comparable {
    private let isNegative: Bool
    /// The digits before the point, without leading zeros.
    private let whole: [UInt8]
    /// The digits behind the point, without trailing zeros.
    private let fraction: [UInt8]

    /// Reads digits with at most one point, and a sign.
    /// - Returns: Nil for other text.
    init?(_ text: String) {
        var bytes = Array(text.utf8)[...]
        let isSigned = bytes.first == UInt8(ascii: "-")
        if isSigned || bytes.first == UInt8(ascii: "+") { bytes.removeFirst() }
        let parts = bytes.split(
            separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, !first.isEmpty || parts.count == 2,
            parts.contains(where: { !$0.isEmpty }),
            parts.allSatisfy({ $0.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 } })
        else { return nil }
        let zero = UInt8(ascii: "0")
        whole = Array(first.drop { $0 == zero })
        var behind = parts.count == 2 ? Array(parts[1]) : []
        while behind.last == zero { behind.removeLast() }
        fraction = behind
        isNegative = isSigned && !(whole.isEmpty && behind.isEmpty)
    }

    /// The nearest double.
    var double: Double {
        let digits = String(decoding: whole, as: UTF8.self)
        let behind = String(decoding: fraction, as: UTF8.self)
        return Double("\(isNegative ? "-" : "")0\(digits).\(behind)0") ?? 0
    }

    static func < (left: Self, right: Self) -> Bool {
        if left.isNegative != right.isNegative { return left.isNegative }
        return left.isNegative ? right.isBelow(left) : left.isBelow(right)
    }

    /// Whether the number is below another one, both without their signs.
    private func isBelow(_ other: Self) -> Bool {
        if whole.count != other.whole.count { return whole.count < other.whole.count }
        if whole != other.whole { return whole.lexicographicallyPrecedes(other.whole) }
        return fraction.lexicographicallyPrecedes(other.fraction)
    }
}
