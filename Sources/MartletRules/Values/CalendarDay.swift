/// Days of the calendar as days since 1970-01-01.
///
/// By Howard Hinnant's `days_from_civil` (http://howardhinnant.github.io/date_algorithms.html).
package enum CalendarDay {
    /// Reads a day such as “2026-11-27”, alone or before a time of day.
    /// - Returns: The days since 1970-01-01; nil for other text and for days that do not exist.
    package static func days(_ text: String) -> Int64? {
        let bytes = Array(text.utf8)
        let dash = UInt8(ascii: "-")
        guard bytes.count >= 10, bytes[4] == dash, bytes[7] == dash,
            bytes.count == 10 || bytes[10] == UInt8(ascii: "T") || bytes[10] == UInt8(ascii: " "),
            let year = number(bytes[0..<4]), let month = number(bytes[5..<7]),
            let day = number(bytes[8..<10]), year > 0, 1...12 ~= month, day > 0,
            day <= length(of: month, year)
        else { return nil }
        let shifted = month <= 2 ? year - 1 : year
        let era = shifted / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
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
