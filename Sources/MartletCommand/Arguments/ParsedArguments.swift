/// The arguments and options of one command line.
struct ParsedArguments: Hashable, Sendable {
    let command: String
    var positional: [String] = []
    var values: [String: [String]] = [:]
    var switches: Set<String> = []

    var isJSON: Bool { switches.contains("json") }

    /// Returns the value of an option; the last one if it was given several times.
    func value(_ name: String) -> String? {
        values[name]?.last
    }

    func has(_ name: String) -> Bool {
        switches.contains(name)
    }

    /// Returns the value of an option as a whole number within a range.
    /// - Throws: `UsageError`.
    func integer(
        _ name: String, in range: ClosedRange<Int>, default fallback: Int
    ) throws -> Int {
        guard let text = value(name) else { return fallback }
        guard let number = Int(text), range.contains(number) else {
            throw UsageError(
                "--\(name) takes a whole number from \(range.lowerBound) to \(range.upperBound).",
                command: command)
        }
        return number
    }

    /// Returns the value of an option as a seed: an unsigned number of 64 bits.
    /// - Throws: `UsageError`.
    func seed(_ name: String) throws -> UInt64? {
        guard let text = value(name) else { return nil }
        guard let number = UInt64(text) else {
            throw UsageError("--\(name) takes a whole number from 0 on.", command: command)
        }
        return number
    }
}
