import Foundation
import Martlet
import TestPrograms
import Testing

extension SyncIntegration {
    /// Very much at once, with the memory it takes.
    @Suite("volume", .timeLimit(.minutes(4)))
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

        private static func check(_ scenario: Scenario, _ count: Int) async throws {
            #expect(
                try await scenario.rows("SELECT count(*), min(id), max(id), max(name) FROM teams")
                    == ["\(count) 1 \(count) teams 99999"])
        }

        @Test("thousands of deltas at once: 100,000 change sets in one answer, memory measured")
        func answer() async throws {
            try await Scenario.play(
                sync(
                    "100,000", since: 0,
                    then: #"{"generate": {"type": "teams", "count": 100000}}"#)
            ) { (scenario) async throws in
                let growth = try await Self.growth { try await scenario.client.sync() }
                print("100,000 change sets in one answer: \(growth ?? 0) MiB more at most")
                try await Self.check(scenario, 100_000)
                #expect(growth ?? 0 <= 250)
            }
        }
    }
}
