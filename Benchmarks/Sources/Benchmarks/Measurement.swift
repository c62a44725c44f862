import Foundation

/// One case's figures: printed as one line of JSON.
struct Measurement: Codable {
    /// The case.
    var name: String
    /// What is counted, such as `MB/s` or `ms`.
    var unit: String
    /// The middle sample.
    var median: Double
    /// The distance between the samples at a quarter and at three quarters, over the median.
    var spread: Double
    /// The number of samples.
    var samples: Int
    /// What the case costs by expectation, in words.
    var expected: String?
    /// Processor, cores, system.
    var machine: String

    init(_ name: String, unit: String, samples: [Double], expected: String? = nil) {
        let sorted = samples.sorted()
        self.name = name
        self.unit = unit
        median = Self.rounded(sorted[sorted.count / 2])
        let range = sorted[sorted.count * 3 / 4] - sorted[sorted.count / 4]
        let middle = sorted[sorted.count / 2]
        spread = middle > 0 ? Self.rounded(range / middle) : 0
        self.samples = samples.count
        self.expected = expected
        machine = Machine.current
    }

    func report() throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // At once, so that a run that is broken off has told what it knew.
        FileHandle.standardOutput.write(try encoder.encode(self) + [UInt8(ascii: "\n")])
    }

    private static func rounded(_ number: Double) -> Double {
        number >= 100 ? number.rounded() : (number * 1000).rounded() / 1000
    }
}
