/// Writes the user's time in the form of the wire.
package enum Timestamp {
    /// Returns a time in RFC 3339, in UTC with milliseconds, such as `2026-11-21T09:12:44.120Z`.
    ///
    /// The date is computed from the days since 1970 by Howard Hinnant's `civil_from_days`
    /// (http://howardhinnant.github.io/date_algorithms.html).
    /// - Parameter milliseconds: The milliseconds since 1970-01-01T00:00:00Z; may be negative.
    package static func rfc3339(milliseconds: Int64) -> String {
        let day = (milliseconds - (milliseconds < 0 ? 86_399_999 : 0)) / 86_400_000
        let rest = milliseconds - day * 86_400_000
        let shifted = day + 719_468
        let era = (shifted - (shifted < 0 ? 146_096 : 0)) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let dayOfMonth = dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        let date = "\(padded(year, 4))-\(padded(month, 2))-\(padded(dayOfMonth, 2))"
        let hour = padded(rest / 3_600_000, 2)
        let minute = padded(rest / 60_000 % 60, 2)
        let second = padded(rest / 1_000 % 60, 2)
        return "\(date)T\(hour):\(minute):\(second).\(padded(rest % 1_000, 3))Z"
    }

    private static func padded(_ number: Int64, _ width: Int) -> String {
        let digits = String(number.magnitude)
        let zeros = String(repeating: "0", count: max(0, width - digits.count))
        return (number < 0 ? "-" : "") + zeros + digits
    }
}
