/// A day as PostgreSQL stores it: a day of the proleptic Gregorian calendar, or one of the two
/// infinities.
public struct PostgresDate: Hashable, Sendable, CustomStringConvertible {
    /// Days since 2000-01-01. The smallest and the largest number are the infinities.
    public let days: Int32

    public init(days: Int32) {
        self.days = days
    }

    public static let infinity = PostgresDate(days: .max)
    public static let minusInfinity = PostgresDate(days: .min)

    /// The date as PostgreSQL writes it with `DateStyle = ISO`: 2026-11-21, 0044-03-15 BC,
    /// infinity.
    public var description: String {
        if self == .infinity { return "infinity" }
        if self == .minusInfinity { return "-infinity" }
        let day = CalendarDay(days: Int64(days))
        return day.isBeforeChrist ? "\(day.text) BC" : day.text
    }
}

/// A time of day.
public struct PostgresTime: Hashable, Sendable, CustomStringConvertible {
    /// Microseconds since midnight, 0 to 86,400,000,000. PostgreSQL has 24:00:00, too.
    public let microseconds: Int64

    public init(microseconds: Int64) {
        self.microseconds = microseconds
    }

    /// The time as PostgreSQL writes it: 09:12:44.12.
    public var description: String {
        let seconds = microseconds / 1_000_000
        let parts = [seconds / 3_600, seconds / 60 % 60, seconds % 60]
        let whole = parts.map { padded($0, 2) }.joined(separator: ":")
        var fraction = padded(microseconds % 1_000_000, 6)[...]
        while fraction.last == "0" { fraction = fraction.dropLast() }
        return fraction.isEmpty ? whole : "\(whole).\(fraction)"
    }
}

/// A timestamp as PostgreSQL stores it. The type of its column says which time zone it is in.
public struct PostgresTimestamp: Hashable, Sendable, CustomStringConvertible {
    /// Microseconds since 2000-01-01 00:00. The smallest and the largest number are the infinities.
    public let microseconds: Int64

    public init(microseconds: Int64) {
        self.microseconds = microseconds
    }

    public static let infinity = PostgresTimestamp(microseconds: .max)
    public static let minusInfinity = PostgresTimestamp(microseconds: .min)

    /// The timestamp as PostgreSQL writes one without time zone: 2026-11-21 09:12:44.12.
    public var description: String { text(zone: "") }

    /// Returns the timestamp as PostgreSQL writes it with `DateStyle = ISO`.
    /// - Parameter zone: The text after the time: `+00` for a timestamp with time zone in UTC.
    func text(zone: String) -> String {
        if self == .infinity { return "infinity" }
        if self == .minusInfinity { return "-infinity" }
        let perDay: Int64 = 86_400_000_000
        var days = microseconds / perDay
        var rest = microseconds % perDay
        if rest < 0 {
            days -= 1
            rest += perDay
        }
        let day = CalendarDay(days: days)
        let moment = "\(day.text) \(PostgresTime(microseconds: rest))\(zone)"
        return day.isBeforeChrist ? "\(moment) BC" : moment
    }
}

/// A day of the proleptic Gregorian calendar.
///
/// The algorithm is H. Hinnant's `civil_from_days` (“chrono-Compatible Low-Level Date Algorithms”).
/// It uses eras of 400 years, with years that begin in March.
private struct CalendarDay {
    let year: Int64
    let month: Int64
    let day: Int64

    /// Finds the day with a number.
    /// - Parameter days: Days since 2000-01-01.
    init(days: Int64) {
        let shifted = days + 730_425  // since 0000-03-01
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra =
            (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    var isBeforeChrist: Bool { year <= 0 }

    var text: String {
        let shown = isBeforeChrist ? 1 - year : year
        return "\(padded(shown, 4))-\(padded(month, 2))-\(padded(day, 2))"
    }
}

private func padded(_ number: Int64, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
}
