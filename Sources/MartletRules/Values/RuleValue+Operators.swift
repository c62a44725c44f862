internal import MartletModel

extension RuleValue {
    /// Returns the order of two values: negative, 0 or positive; nil if one is NULL, or if values
    /// of columns without a type do not compare.
    ///
    /// Texts are compared by their bytes. An integer and a double are compared as doubles, as
    /// PostgreSQL does.
    /// - Throws: `RuleValueFault` if a text that is compared with a day is none.
    func order(_ other: RuleValue) throws(RuleValueFault) -> Int? {
        switch (self, other) {
        case (.boolean(let a), .boolean(let b)): Self.order(a ? 1 : 0, b ? 1 : 0)
        case (.integer(let a), .integer(let b)): Self.order(a, b)
        case (.date(let a), .date(let b)): Self.order(a, b)
        case (.text(let a), .text(let b)): Self.order(a, b)
        // Devices keep days as texts.
        case (.date, .text): try order(other.cast(to: .date))
        case (.text, .date): try cast(to: .date).order(other)
        case (.decimal(let a), .decimal(let b)): Self.order(a, b)
        case (.decimal(let a), .integer(let b)):
            ExactDecimal(String(b)).map { Self.order(a, $0) }
        case (.integer(let a), .decimal(let b)):
            ExactDecimal(String(a)).map { Self.order($0, b) }
        default: realOrder(other)
        }
    }

    private func realOrder(_ other: RuleValue) -> Int? {
        guard let a = double, let b = other.double else { return nil }
        // In PostgreSQL, NaN equals itself and is greater than every number.
        guard !a.isNaN, !b.isNaN else { return Self.order(a.isNaN ? 1 : 0, b.isNaN ? 1 : 0) }
        return Self.order(a, b)
    }

    /// Returns the number in a text of the type numeric; nil if it is none.
    static func number(_ text: String) -> RuleValue? {
        switch text {
        case "NaN": .real(.nan)
        case "Infinity": .real(.infinity)
        case "-Infinity": .real(-.infinity)
        default: ExactDecimal(text).map { .decimal($0) }
        }
    }

    private var double: Double? {
        switch self {
        case .integer(let number): Double(number)
        case .real(let number): number
        case .decimal(let number): number.double
        default: nil
        }
    }

    private static func order<T: Comparable>(_ a: T, _ b: T) -> Int {
        a < b ? -1 : (b < a ? 1 : 0)
    }

    private static func order(_ a: String, _ b: String) -> Int {
        if a.hasSameBytes(as: b) { return 0 }
        return a.utf8.lexicographicallyPrecedes(b.utf8) ? -1 : 1
    }

    /// Returns the value as another type.
    /// - Throws: `RuleValueFault` if it has no meaning there.
    func cast(to type: RuleType) throws(RuleValueFault) -> RuleValue {
        switch (self, type) {
        case (.null, _): return .null
        case (.boolean, .boolean), (.integer, .integer), (.real, .real), (.decimal, .numeric),
            (.text, .text), (.date, .date), (.text, .blob):
            return self
        case (.text(let text), _): if let value = Self.read(text, as: type) { return value }
        case (.integer(let number), .real): return .real(Double(number))
        case (.integer(let number), .numeric):
            if let decimal = ExactDecimal(String(number)) { return .decimal(decimal) }
        case (.integer(let number), .boolean): return .boolean(number != 0)
        case (.boolean(let value), .integer): return .integer(value ? 1 : 0)
        case (.decimal(let number), .real): return .real(number.double)
        case (.boolean(let value), .text): return .text(value ? "true" : "false")
        case (.integer(let number), .text): return .text(String(number))
        case (.date(let days), .text): return .text(CalendarDay.text(days))
        default: break
        }
        throw RuleValueFault("a value is no \(type.name)")
    }

    /// Returns the text of a UUID as PostgreSQL writes it. It reads the same forms: with capital letters,
    /// in braces, without hyphens, or with one behind any four digits.
    /// - Throws: `RuleValueFault` if the text is none.
    func uuid() throws(RuleValueFault) -> RuleValue {
        guard case .text(let text) = self else {
            if self == .null { return .null }
            throw RuleValueFault("a value is no uuid")
        }
        var rest = Array(text.lowercased().utf8)[...]
        let hasBraces = rest.first == UInt8(ascii: "{")
        if hasBraces { rest.removeFirst() }
        var digits: [UInt8] = []
        while digits.count < 32, let digit = rest.popFirst() {
            if digit == UInt8(ascii: "-"), !digits.isEmpty, digits.count.isMultiple(of: 4),
                rest.first != UInt8(ascii: "-")
            {
                continue
            }
            guard
                UInt8(ascii: "0")...UInt8(ascii: "9") ~= digit
                    || UInt8(ascii: "a")...UInt8(ascii: "f") ~= digit
            else { break }
            digits.append(digit)
        }
        guard digits.count == 32, rest.elementsEqual(hasBraces ? [UInt8(ascii: "}")] : []) else {
            throw RuleValueFault("a text is no uuid")
        }
        var parts: [String] = []
        for length in [8, 4, 4, 4, 12] {
            parts.append(String(decoding: digits.prefix(length), as: UTF8.self))
            digits.removeFirst(length)
        }
        return .text(parts.joined(separator: "-"))
    }

    /// Returns an integer if it fits in this many bits; NULL for NULL.
    /// - Throws: `RuleValueFault` if it does not.
    func fitting(bits: Int) throws(RuleValueFault) -> RuleValue {
        guard case .integer(let number) = self else { return self }
        guard number >> (bits - 1) == 0 || number >> (bits - 1) == -1 else {
            throw RuleValueFault("a number is too large")
        }
        return self
    }

    private static func read(_ text: String, as type: RuleType) -> RuleValue? {
        let trimmed = text.trimmingSpaces()
        switch type {
        case .integer: return Int64(trimmed).map { .integer($0) }
        case .real:
            // A number that a double cannot hold is none.
            guard let number = Double(trimmed),
                number.isFinite || trimmed.lowercased().contains("inf")
                    || trimmed.lowercased().contains("nan")
            else { return nil }
            return .real(number)
        case .numeric: return number(trimmed)
        case .date: return CalendarDay.days(trimmed).map { .date($0) }
        case .boolean:
            switch trimmed.lowercased() {
            case "true", "t", "yes", "y", "on", "1": return .boolean(true)
            case "false", "f", "no", "n", "off", "0": return .boolean(false)
            default: return nil
            }
        case .text, .blob, .any, .unknown, .uuid, .storedUUID, .storedDate, .enumeration,
            .incomparable:
            return .text(text)
        }
    }

    /// Returns the result of an operator of arithmetic; NULL if one value is NULL.
    /// - Throws: `RuleValueFault` if there is none.
    func computed(
        _ sign: Arithmetic, _ other: RuleValue
    ) throws(RuleValueFault) -> RuleValue {
        switch (self, other) {
        case (.null, _), (_, .null): return .null
        case (.integer(let a), .integer(let b)): return .integer(try Self.computed(sign, a, b))
        case (.date(let day), .integer) where CalendarDay.isInfinite(day),
            (.integer, .date(let day)) where CalendarDay.isInfinite(day):
            return .date(day)
        case (.date(let a), .date(let b))
        where CalendarDay.isInfinite(a) || CalendarDay.isInfinite(b):
            throw RuleValueFault("infinite days have no difference")
        case (.date(let day), .integer(let count)) where sign == .plus || sign == .minus:
            return try Self.day(Self.computed(sign, day, count))
        case (.integer(let count), .date(let day)) where sign == .plus:
            return try Self.day(Self.computed(sign, day, count))
        case (.date(let a), .date(let b)) where sign == .minus:
            return .integer(try Self.computed(sign, a, b))
        default: throw RuleValueFault("“\(sign.rawValue)” has no result for these values")
        }
    }

    /// The days that PostgreSQL has, from 4714-11-24 BC on.
    private static let days: Range<Int64> = -2_440_588..<2_145_042_906

    private static func day(_ number: Int64) throws(RuleValueFault) -> RuleValue {
        guard days.contains(number) else { throw RuleValueFault("a day is out of range") }
        return .date(number)
    }

    private static func computed(
        _ sign: Arithmetic, _ a: Int64, _ b: Int64
    ) throws(RuleValueFault) -> Int64 {
        if b == 0, sign == .divided || sign == .remainder {
            throw RuleValueFault("a division by zero")
        }
        let (result, isTooLarge) =
            switch sign {
            case .plus: a.addingReportingOverflow(b)
            case .minus: a.subtractingReportingOverflow(b)
            case .times: a.multipliedReportingOverflow(by: b)
            case .divided: a.dividedReportingOverflow(by: b)
            case .remainder: b == -1 ? (0, false) : a.remainderReportingOverflow(dividingBy: b)
            }
        guard !isTooLarge else { throw RuleValueFault("a number is too large") }
        return result
    }
}

extension String {
    fileprivate func trimmingSpaces() -> String {
        let spaces: Set<Unicode.Scalar> = [" ", "\t", "\n", "\r"]
        let start = unicodeScalars.drop { spaces.contains($0) }
        guard let last = start.lastIndex(where: { !spaces.contains($0) }) else { return "" }
        return String(start[...last])
    }
}
