import Foundation
import Martlet
import Testing

extension SyncIntegration {
    /// What a server sends that this version of the app has no place for.
    @Suite("models", .timeLimit(.minutes(5)))
    struct ModelScenarios {
        private static let later = """
            CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL, colour TEXT);
            CREATE TABLE players (
                id INTEGER PRIMARY KEY, name TEXT NOT NULL, number INTEGER CHECK (number > 0),
                team INTEGER REFERENCES teams(id) ON DELETE CASCADE
            );
            CREATE TABLE coaches (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
            """
        private static let team = """
            {"revision": 1, "types": ["teams"],
             "teams": {"create": [1], "update": [], "delete": [],
                       "attributes": {"1": {"revision": 1, "name": "Ants", "colour": "red"}}}}
            """

        @Test("model mismatch: an unknown entity is passed over, and there for a later version")
        func entity() async throws {
            try await Scenario.play(
                sync(
                    "coaches", since: 0,
                    then: answer(
                        3, set(1, create: [5: "Ada", 6: "Ben"], type: "coaches"),
                        set(2, create: [1: "Ants"]),
                        set(3, update: [5: "Eve"], delete: [6], type: "coaches"))
                )
            ) { (scenario) async throws in
                #expect(try await scenario.client.sync() == 3)
                same(try await scenario.teams, ["1 Ants"])
                let later = try await scenario.reopened(schema: Self.later)
                same(try await later.rows("SELECT id, name FROM coaches"), ["5 Eve"])
                await later.client.close()
            }
        }

        @Test("model mismatch: an unknown attribute is passed over, and there for a later version")
        func attribute() async throws {
            try await Scenario.play(
                sync("colours", since: 0, then: answer(2, Self.team, set(2, update: [1: "Bees"])))
            ) { (scenario) async throws in
                #expect(try await scenario.client.sync() == 2)
                same(try await scenario.teams, ["1 Bees"])
                let later = try await scenario.reopened(schema: Self.later)
                same(try await later.rows("SELECT id, name, colour FROM teams"), ["1 Bees red"])
                await later.client.close()
            }
        }
    }
}
