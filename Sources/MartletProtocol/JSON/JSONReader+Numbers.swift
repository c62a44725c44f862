internal import MartletModel

/// A number in the input.
struct NumberToken {
    var start: Int
    var end: Int
    var isNegative = false
    /// Whether it has neither a fraction nor an exponent.
    var isInteger = true
    /// The digits before the exponent as a number, without the point; nil beyond 64 bits.
    var digits: UInt64? = 0
    /// The number of digits after the point.
    var fractionDigits = 0
    /// The exponent as written, clamped to ±100,000.
    var exponent = 0
}

extension JSONReader {
    /// Reads an integer: a number without fraction and exponent, exact in 64 bits.
    /// - Throws: `WireFault` if the next value is no such number.
    package mutating func readInteger() throws(WireFault) -> Int64 {
        let byte = peek()
        guard byte == UInt8(ascii: "-") || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte else {
            throw shape("Expected an integer.")
        }
        let token = try scanNumber()
        guard token.isInteger else {
            throw WireFault(
                "Expected an integer, without fraction or exponent.", at: token.start, shape: true)
        }
        return try integer(of: token)
    }

    /// Reads a number: an integer if it has neither fraction nor exponent, otherwise a real.
    mutating func readNumber() throws(WireFault) -> Value {
        let token = try scanNumber()
        return token.isInteger ? .integer(try integer(of: token)) : .real(try real(of: token))
    }

    /// Passes a number, and checks its grammar. The cursor must be at a digit or a minus sign.
    mutating func scanNumber() throws(WireFault) -> NumberToken {
        var token = NumberToken(start: position, end: position)
        var index = position
        if bytes[index] == UInt8(ascii: "-") {
            token.isNegative = true
            index += 1
        }
        let first = index
        index = scanDigits(at: index, into: &token)
        guard index > first else { throw badNumber(at: index) }
        if index - first > 1, bytes[first] == UInt8(ascii: "0") {
            throw WireFault("A number starts with a zero too many.", at: first)
        }
        if index < bytes.count, bytes[index] == UInt8(ascii: ".") {
            token.isInteger = false
            let point = index
            index = scanDigits(at: index + 1, into: &token)
            token.fractionDigits = index - point - 1
            guard token.fractionDigits > 0 else { throw badNumber(at: index) }
        }
        if index < bytes.count, bytes[index] | 0x20 == UInt8(ascii: "e") {
            token.isInteger = false
            index = try scanExponent(at: index + 1, into: &token)
        }
        token.end = index
        position = index
        return token
    }

    private func scanDigits(at start: Int, into token: inout NumberToken) -> Int {
        var index = start
        var digits = token.digits ?? 0
        var isExact = token.digits != nil
        while index < bytes.count {
            let digit = bytes[index] &- UInt8(ascii: "0")
            guard digit <= 9 else { break }
            let (tenfold, overflow) = digits.multipliedReportingOverflow(by: 10)
            let (next, carry) = tenfold.addingReportingOverflow(UInt64(digit))
            if overflow || carry { isExact = false }
            digits = next
            index += 1
        }
        token.digits = isExact ? digits : nil
        return index
    }

    private func scanExponent(
        at start: Int, into token: inout NumberToken
    ) throws(WireFault) -> Int {
        var index = start
        var isNegative = false
        if index < bytes.count {
            isNegative = bytes[index] == UInt8(ascii: "-")
            if isNegative || bytes[index] == UInt8(ascii: "+") { index += 1 }
        }
        let first = index
        while index < bytes.count {
            let digit = bytes[index] &- UInt8(ascii: "0")
            guard digit <= 9 else { break }
            token.exponent = min(token.exponent * 10 + Int(digit), 100_000)
            index += 1
        }
        guard index > first else { throw badNumber(at: index) }
        if isNegative { token.exponent = -token.exponent }
        return index
    }

    private func badNumber(at index: Int) -> WireFault {
        index < bytes.count
            ? WireFault("A number lacks a digit.", at: index)
            : WireFault("The document ends too early.", at: index)
    }

    private func integer(of token: NumberToken) throws(WireFault) -> Int64 {
        if let digits = token.digits {
            if digits <= UInt64(Int64.max) {
                return token.isNegative ? -Int64(digits) : Int64(digits)
            }
            if token.isNegative, digits == Int64.min.magnitude { return Int64.min }
        }
        throw WireFault("An integer is beyond 64 bits.", at: token.start, shape: true)
    }

    /// Returns the nearest double. With at most 53 bits of digits and a power of ten up to 22, one
    /// exact multiplication or division gives it (Clinger, 1990); otherwise the standard library
    /// does.
    private func real(of token: NumberToken) throws(WireFault) -> Double {
        let scale = token.exponent - token.fractionDigits
        if let digits = token.digits, digits <= 1 << 53, -22...22 ~= scale {
            let power = Self.powersOfTen[abs(scale)]
            let number = scale < 0 ? Double(digits) / power : Double(digits) * power
            return token.isNegative ? -number : number
        }
        let text = String(decoding: bytes[token.start..<token.end], as: UTF8.self)
        guard let number = Double(text), number.isFinite else {
            throw WireFault("A number is too large.", at: token.start, shape: true)
        }
        return number
    }

    private static let powersOfTen: [Double] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
        1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
    ]
}
