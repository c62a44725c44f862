import Foundation
import Martlet
import MartletModel
import TestPrograms
import Testing

extension SyncIntegration {
    /// Very much at once, with the memory it takes.
    @Suite("volume", .timeLimit(.minutes(5)))
    struct VolumeScenarios {
        /// Runs `body` and gives how much more memory was held at most than before, in MiB; nil where
        /// the platform does not tell.
        private static func growth(_ body: () async throws -> Void) async throws -> Int? {
            PeakMemory.reset()
            let before = PeakMemory.residentBytes
            try await body()
            guard let before, let peak = PeakMemory.bytes else { return nil }
            return (peak - before) >> 20
        }

        /// Compares a growth of memory with the allowed one, and says so if nothing could be
        /// measured.
        private static func expect(_ what: String, _ growth: Int?, within mebibytes: Int) throws {
            #if os(Linux)
                let growth = try #require(growth, "the system did not tell the memory held")
            #else
                guard let growth else {
                    return print("\(what): memory not measured on this system")
                }
            #endif
            print("\(what): \(growth) MiB more at most")
            #expect(growth <= mebibytes)
        }

        private static func check(_ scenario: Scenario, _ count: Int) async throws {
            #expect(
                try await scenario.rows(
                    "SELECT count(*), min(id), max(id), count(DISTINCT name) FROM teams")
                    == ["\(count) 1 \(count) \(count)"])
        }

        /// Plays a stream that brings so many teams, and tells the memory it took. A client that
        /// takes its time is cut off by itself, and gets the rest when it comes back.
        private static func streamed(
            _ count: Int, perVersion: Int = 1, perBatch: Int
        ) async throws -> Int? {
            var growth: Int?
            let generator = """
                {"type": "teams", "count": \(count), "version": 1, "perVersion": \(perVersion),
                 "perBatch": \(perBatch)}
                """
            try await Scenario.live(
                sync("begin", since: 0, then: answer(0)) + """
                    , {"name": "very many", "on": "stream", "times": "any",
                       "then": {"generate": \(generator)}}
                    """
            ) { scenario in
                growth = try await Self.growth {
                    scenario.listen()
                    try await scenario.until(revision: Revision(count / perVersion))
                }
                try await Self.check(scenario, count)
            }
            return growth
        }

        @Test("thousands of deltas at once: 20,000 in one batch of a stream, memory measured")
        func oneBatch() async throws {
            let growth = try await Self.streamed(20_000, perBatch: 20_000)
            try Self.expect("20,000 deltas in one batch", growth, within: 64)
        }

        @Test("thousands of deltas at once: memory does not grow with the number of batches")
        func batches() async throws {
            for (count, bound) in [(20_000, 64), (100_000, 24)] {
                let growth = try await Self.streamed(count, perVersion: 10, perBatch: 1_000)
                try Self.expect("\(count) deltas in batches of 1,000", growth, within: bound)
            }
        }

        @Test("thousands of deltas at once: 100,000 change sets in one answer, memory measured")
        func oneAnswer() async throws {
            try await Scenario.play(
                sync(
                    "100,000", since: 0,
                    then: #"{"generate": {"type": "teams", "count": 100000}}"#)
            ) { (scenario) async throws in
                let growth = try await Self.growth { try await scenario.client.sync() }
                try await Self.check(scenario, 100_000)
                try Self.expect("100,000 change sets in one answer", growth, within: 128)
            }
        }
    }
}
