/// Days of the calendar as days since 1970-01-01. As in PostgreSQL, “infinity” is after all of them, and
/// “-infinity” before.
///
/// By Howard Hinnant's `days_from_civil` and `civil_from_days`
/// (http://howardhinnant.github.io/date_algorithms.html).
package enum CalendarDay {
    /// The number of “infinity”; that of “-infinity” is `Int64.min`.
    static let infinity = Int64.max

    static func isInfinite(_ days: Int64) -> Bool { days == infinity || days == .min }

    /// Reads a day such as “2026-11-27”, alone or before a time of day. It may have a year of up to seven digits,
    /// or “ BC” in the end.
    /// - Returns: The days since 1970-01-01; nil for other text and for days that do not exist.
    package static func days(_ text: String) -> Int64? {
        if text == "infinity" { return infinity }
        if text == "-infinity" { return .min }
        let isBeforeChrist = text.hasSuffix(" BC")
        let bytes = Array(text.utf8.dropLast(isBeforeChrist ? 3 : 0))
        let dash = UInt8(ascii: "-")
        guard let end = bytes.firstIndex(of: dash), 4...7 ~= end,
            end == 4 || bytes[0] != UInt8(ascii: "0"), bytes.count >= end + 6,
            bytes[end + 3] == dash, let year = number(bytes[..<end]),
            let month = number(bytes[(end + 1)..<(end + 3)]),
            let day = number(bytes[(end + 4)..<(end + 6)]), year > 0, 1...12 ~= month, day > 0
        else { return nil }
        if bytes.count > end + 6 {
            let next = bytes[end + 6]
            guard !isBeforeChrist, next == UInt8(ascii: "T") || next == UInt8(ascii: " ") else {
                return nil
            }
        }
        // The year 1 BC is the year 0.
        let counted = isBeforeChrist ? 1 - year : year
        guard day <= length(of: month, counted) else { return nil }
        let shifted = month <= 2 ? counted - 1 : counted
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    /// Returns the text of a day as PostgreSQL writes it.
    static func text(_ days: Int64) -> String {
        guard !isInfinite(days) else { return days == infinity ? "infinity" : "-infinity" }
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthOfYear = (5 * dayOfYear + 2) / 153
        let month = monthOfYear < 10 ? monthOfYear + 3 : monthOfYear - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        let numbers = [
            padded(year > 0 ? year : 1 - year, 4), padded(month, 2),
            padded(dayOfYear - (153 * monthOfYear + 2) / 5 + 1, 2),
        ]
        return numbers.joined(separator: "-") + (year > 0 ? "" : " BC")
    }

    private static func padded(_ number: Int64, _ count: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, count - digits.utf8.count)) + digits
    }

    /// Returns the text of the day that a text means, such as “2026-11-07” for “2026-11-7”; nil if it is none.
    static func written(_ text: String) -> String? {
        let parts = text.prefix { $0 != "T" && $0 != " " }
            .split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].utf8.count == 4,
            parts.allSatisfy({ 1...4 ~= $0.utf8.count })
        else { return nil }
        let padded = parts.map { $0.utf8.count == 1 ? "0\($0)" : "\($0)" }
            .joined(separator: "-")
        return days(padded) == nil ? nil : padded
    }

    /// Returns the day of a moment in UTC.
    /// - Parameter milliseconds: Milliseconds since 1970.
    package static func days(milliseconds: Int64) -> Int64 {
        let length: Int64 = 86_400_000
        return milliseconds / length - (milliseconds % length < 0 ? 1 : 0)
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
        var number: Int64 = 0
        for digit in digits {
            guard UInt8(ascii: "0")...UInt8(ascii: "9") ~= digit else { return nil }
            number = number * 10 + Int64(digit - UInt8(ascii: "0"))
        }
        return number
    }

    private static func length(of month: Int64, _ year: Int64) -> Int64 {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }
}
