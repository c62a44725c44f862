import Martlet
import YouthSports

/// What words of the command line stand for.
enum Values {
    /// A record's number.
    /// - Throws: `UsageError`.
    static func id(_ word: String, _ what: String) throws -> RecordID {
        guard let number = Int64(word), number != 0 else {
            throw UsageError("\(what) is a number as the lists show it, not “\(word)”.")
        }
        return .integer(number)
    }

    /// A day as `2026-03-14`.
    /// - Throws: `UsageError`.
    static func day(_ word: String, _ what: String) throws -> String {
        let parts = word.split(separator: "-", omittingEmptySubsequences: false)
        let numbers = parts.compactMap { Int($0) }
        guard parts.map(\.count) == [4, 2, 2], numbers.count == 3, (1...12).contains(numbers[1]),
            (1...31).contains(numbers[2])
        else {
            throw UsageError("\(what) is a day such as 2026-03-14, not “\(word)”.")
        }
        return word
    }

    /// A whole number within bounds.
    /// - Throws: `UsageError`.
    static func number(
        _ word: String, _ what: String, in range: ClosedRange<Int>
    ) throws -> Int {
        guard let number = Int(word), range.contains(number) else {
            throw UsageError(
                "\(what) is a number from \(range.lowerBound) to \(range.upperBound), not “\(word)”."
            )
        }
        return number
    }

    /// A number taken in a screening: `height=152.5cm`.
    /// - Throws: `UsageError`.
    static func measurement(_ word: String) throws -> Measurement {
        let parts = word.split(separator: "=", maxSplits: 1)
        guard parts.count == 2,
            let end = parts[1].firstIndex(where: { !"0123456789.-".contains($0) }),
            let value = Double(parts[1][..<end])
        else {
            throw UsageError(
                "--measure is a kind, a number and a unit such as height=152.5cm, not “\(word)”.")
        }
        return Measurement(kind: String(parts[0]), value: value, unit: String(parts[1][end...]))
    }

    /// A duty's word.
    /// - Throws: `UsageError`.
    static func duty(_ word: String) throws -> Duty.Kind {
        guard let kind = Duty.Kind(rawValue: word) else {
            let all = Duty.Kind.allCases.map(\.rawValue).joined(separator: ", ")
            throw UsageError("A duty is one of \(all), not “\(word)”.")
        }
        return kind
    }
}
