import Foundation
import Martlet
import Testing

extension SyncIntegration {
    /// Answers to `POST /sync` whose sets are not in the order of the log.
    @Suite("order", .timeLimit(.minutes(5)))
    struct OrderScenarios {
        private static let good = [
            set(1, create: [1: "Ants", 2: "Bees"]), set(2, update: [1: "Crows"]),
        ]

        @Test(
            "duplicate batches: a set that comes twice in one answer is applied once, in its turn")
        func doubled() async throws {
            try await Scenario.play(
                [
                    sync(
                        "twice", since: 0,
                        then: answer(2, Self.good[0], Self.good[1], Self.good[0])),
                    sync("asked again", since: 0, then: answer(2, Self.good[0], Self.good[1])),
                ].joined(separator: ",")
            ) { (scenario) async throws in
                #expect(try await scenario.client.sync() == 2)
                same(try await scenario.teams, ["1 Crows", "2 Bees"])
            }
        }

        @Test(
            "out-of-order batches: sets that come newest first are not applied, but asked for again"
        )
        func reordered() async throws {
            try await Scenario.play(
                [
                    sync(
                        "reordered", since: 0,
                        then: answer(
                            3, Self.good[0], set(3, update: [1: "Eagles"]), Self.good[1])),
                    sync(
                        "asked again", since: 0,
                        then: answer(
                            3, Self.good[0], Self.good[1], set(3, update: [1: "Eagles"]))),
                ].joined(separator: ",")
            ) { (scenario) async throws in
                #expect(try await scenario.client.sync() == 3)
                same(try await scenario.teams, ["1 Eagles", "2 Bees"])
            }
        }

        @Test(
            "a version from the future: sets beyond the revision the answer ends at are not applied"
        )
        func future() async throws {
            try await Scenario.play(
                [
                    sync("ends too early", since: 0, then: answer(1, Self.good[0], Self.good[1])),
                    sync("asked again", since: 0, then: answer(1, Self.good[0])),
                ].joined(separator: ",")
            ) { (scenario) async throws in
                #expect(try await scenario.client.sync() == 1)
                same(try await scenario.teams, ["1 Ants", "2 Bees"])
            }
        }
    }
}
