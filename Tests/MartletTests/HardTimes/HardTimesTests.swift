import Foundation
import Testing

/// Tests a device that is on for hours with a network on which some or all fails.
@Suite("Hard times")
struct HardTimesTests {
    /// `MARTLET_HARD_TIMES` tries so many worlds in place of the usual number, and
    /// `MARTLET_HARD_TIMES_SEED` one seed again.
    static let seeds: [UInt64] = {
        let environment = ProcessInfo.processInfo.environment
        if let seed = environment["MARTLET_HARD_TIMES_SEED"].flatMap({ UInt64($0) }) {
            return [seed]
        }
        let count = environment["MARTLET_HARD_TIMES"].flatMap { Int($0) } ?? 24
        return (0..<count).map { _ in UInt64.random(in: 0 ... .max) }
    }()

    @Test(
        "cost few requests, stop nobody but by the server's word, and are soon made up for",
        arguments: seeds)
    func hours(seed: UInt64) throws {
        try HardTimes(seed: seed).run()
    }
}
