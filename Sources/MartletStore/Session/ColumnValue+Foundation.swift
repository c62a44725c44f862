public import Foundation
internal import MartletModel

extension Data: ColumnValue {
    public var sqlValue: SQLValue { .blob(Array(self)) }

    public init(sqlValue: SQLValue) throws {
        self = Data(try [UInt8](sqlValue: sqlValue))
    }
}

extension Date: ColumnValue {
    public var sqlValue: SQLValue {
        let milliseconds = (timeIntervalSince1970 * 1_000).rounded()
        // RFC 3339 has no form for years before 1 or after 9999.
        guard (-62_135_596_800_000...253_402_300_799_999).contains(milliseconds) else {
            return .real(timeIntervalSince1970)
        }
        return .text(Timestamp.rfc3339(milliseconds: Int64(milliseconds)))
    }

    /// Reads RFC 3339; the forms `YYYY-MM-DD HH:MM:SS` and `YYYY-MM-DD` of SQLite's functions (in
    /// UTC); and numbers, as seconds since 1970.
    /// - Throws: `StoreError` `.value` if the stored value is none of these.
    public init(sqlValue: SQLValue) throws {
        switch sqlValue {
        case .integer(let seconds): self = Date(timeIntervalSince1970: Double(seconds))
        case .real(let seconds): self = Date(timeIntervalSince1970: seconds)
        case .text(let text):
            guard let date = DateText.date(text) else {
                throw Self.mismatch(sqlValue, "a date such as 2026-01-31T09:30:00Z")
            }
            self = date
        case .null, .blob: throw Self.mismatch(sqlValue, "a date")
        }
    }
}

extension UUID: ColumnValue {
    public var sqlValue: SQLValue { .text(uuidString.lowercased()) }

    /// Reads the usual text form, or 16 bytes.
    /// - Throws: `StoreError` `.value` if the stored value is neither.
    public init(sqlValue: SQLValue) throws {
        switch sqlValue {
        case .text(let text):
            guard let value = UUID(uuidString: text) else {
                throw Self.mismatch(sqlValue, "a UUID")
            }
            self = value
        case .blob(let bytes) where bytes.count == 16:
            self = UUID(
                uuid: (
                    bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6],
                    bytes[7], bytes[8], bytes[9], bytes[10], bytes[11], bytes[12], bytes[13],
                    bytes[14], bytes[15]
                ))
        default: throw Self.mismatch(sqlValue, "a UUID")
        }
    }
}

extension Decimal: ColumnValue {
    public var sqlValue: SQLValue { .text(description) }

    /// Reads decimal text, and numbers.
    /// - Throws: `StoreError` `.value` if the stored value is neither, or is not finite.
    public init(sqlValue: SQLValue) throws {
        switch sqlValue {
        case .integer(let number): self = Decimal(number)
        case .real(let number):
            // The shortest text makes 0.1 the decimal 0.1.
            guard number.isFinite, let value = Decimal(string: number.description) else {
                throw Self.mismatch(sqlValue, "a decimal number")
            }
            self = value
        case .text(let text):
            guard let value = Decimal(string: text), Double(text)?.isFinite == true else {
                throw Self.mismatch(sqlValue, "a decimal number")
            }
            self = value
        case .null, .blob: throw Self.mismatch(sqlValue, "a decimal number")
        }
    }
}

extension URL: ColumnValue {
    public var sqlValue: SQLValue { .text(absoluteString) }

    public init(sqlValue: SQLValue) throws {
        guard case .text(let text) = sqlValue, let value = URL(string: text) else {
            throw Self.mismatch(sqlValue, "a URL")
        }
        self = value
    }
}

/// Reads dates from text.
enum DateText {
    /// Reads `YYYY-MM-DD`, alone or followed by `T` or a space, `HH:MM[:SS[.fraction]]` and `Z`,
    /// an offset or nothing (UTC). Returns nil for any other text.
    static func date(_ text: String) -> Date? {
        var rest = Array(text.utf8)[...]
        guard let year = number(&rest, digits: 4), skip(&rest, "-"),
            let month = number(&rest, digits: 2), skip(&rest, "-"),
            let day = number(&rest, digits: 2), let days = days(year, month, day)
        else { return nil }
        var seconds = Double(days) * 86_400
        if rest.isEmpty { return Date(timeIntervalSince1970: seconds) }
        guard skip(&rest, "T") || skip(&rest, " "), let hour = number(&rest, digits: 2),
            skip(&rest, ":"), let minute = number(&rest, digits: 2), hour < 24, minute < 60
        else { return nil }
        seconds += Double(hour * 3_600 + minute * 60)
        if skip(&rest, ":") {
            guard let second = number(&rest, digits: 2), second < 61 else { return nil }
            seconds += Double(second)
            if skip(&rest, ".") {
                let digits = rest.prefix { (48...57).contains($0) }
                guard !digits.isEmpty,
                    let part = Double("0." + String(decoding: digits, as: UTF8.self))
                else { return nil }
                seconds += part
                rest = rest.dropFirst(digits.count)
            }
        }
        guard let offset = offset(&rest), rest.isEmpty else { return nil }
        return Date(timeIntervalSince1970: seconds - Double(offset))
    }

    /// Reads the offset from UTC, in seconds; positive to the east. Returns 0 if the text has
    /// ended, and nil if it is no offset.
    private static func offset(_ rest: inout ArraySlice<UInt8>) -> Int? {
        if rest.isEmpty || skip(&rest, "Z") { return 0 }
        let sign = skip(&rest, "+") ? 1 : skip(&rest, "-") ? -1 : 0
        guard sign != 0, let hours = number(&rest, digits: 2), skip(&rest, ":"),
            let minutes = number(&rest, digits: 2), hours < 24, minutes < 60
        else { return nil }
        return sign * (hours * 3_600 + minutes * 60)
    }

    private static func number(_ rest: inout ArraySlice<UInt8>, digits: Int) -> Int? {
        let taken = rest.prefix(digits)
        guard taken.count == digits, taken.allSatisfy({ (48...57).contains($0) }) else {
            return nil
        }
        rest = rest.dropFirst(digits)
        return taken.reduce(0) { $0 * 10 + Int($1 - 48) }
    }

    private static func skip(_ rest: inout ArraySlice<UInt8>, _ character: Character) -> Bool {
        guard rest.first == character.asciiValue else { return false }
        rest = rest.dropFirst()
        return true
    }

    /// Returns the days since 1970-01-01 in the proleptic Gregorian calendar, or nil if there is no
    /// such date. It counts years from March (Howard Hinnant, "chrono-Compatible Low-Level Date
    /// Algorithms").
    private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int? {
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let lengths = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard year > 0, (1...12).contains(month), (1...lengths[month - 1]).contains(day) else {
            return nil
        }
        let shifted = month > 2 ? year : year - 1
        let era = shifted / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }
}
