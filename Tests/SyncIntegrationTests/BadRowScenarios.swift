import Foundation
import Martlet
import MartletDevice
import MartletModel
import Testing

extension SyncIntegration {
    /// Answers to `POST /sync` with a row that no table takes.
    @Suite("bad rows", .timeLimit(.minutes(5)))
    struct BadRowScenarios {
        private static let good = [
            set(1, create: [1: "Ants", 2: "Bees"]), set(2, update: [1: "Crows"]),
        ]

        @Test("failure in mid-transaction: nothing of an answer is applied when its last row fails")
        func failing() async throws {
            let bad = """
                {"revision": 2, "types": ["teams", "players"],
                 "teams": {"create": [], "update": [1], "delete": [],
                           "attributes": {"1": {"revision": 2, "name": "Crows"}}},
                 "players": {"create": [7], "update": [], "delete": [],
                             "attributes": {"7": {"revision": 2, "name": "Pia", "number": -1}}}}
                """
            try await Scenario.play(
                [
                    sync("bad", since: 0, then: answer(2, Self.good[0], bad)),
                    sync(
                        "then busy", since: 0, expect: #""rows": false"#,
                        then: #"{"status": 503, "problem": {"kind": "busy", "retryAfter": 0}}"#),
                    sync("and mended", since: 0, then: answer(2, Self.good[0], Self.good[1])),
                ].joined(separator: ",")
            ) { (scenario) async throws in
                await #expect(throws: SyncError.self) { try await scenario.client.sync() }
                let failed = try await scenario.failure()
                #expect(failed.kind == .violation)
                #expect(failed.message.contains("players 7"), "\(failed.message)")
                same(try await scenario.revision, 0)
                same(try await scenario.teams, [])
                #expect(try await scenario.client.sync() == 2)
                same(try await scenario.teams, ["1 Crows", "2 Bees"])
                same(try await scenario.players, [])
            }
        }

        @Test("poison: a set that no table takes is fetched as rows, and the bad row quarantined")
        func poison() async throws {
            let bad = """
                {"revision": 2, "types": ["teams", "players"],
                 "teams": {"create": [], "update": [1], "delete": [],
                           "attributes": {"1": {"revision": 2, "name": "Crows"}}},
                 "players": {"create": [7], "update": [], "delete": [],
                             "attributes": {"7": {"revision": 2, "name": "Pia", "number": -1}}}}
                """
            let rows = """
                {"difference": true, "revision": 2, "types": ["teams", "players"],
                 "teams": {"create": [], "update": [1, 2], "delete": [],
                           "attributes": {"1": {"revision": 2, "name": "Crows"},
                                          "2": {"revision": 1, "name": "Bees"}}},
                 "players": {"create": [], "update": [7], "delete": [],
                             "attributes": {"7": {"revision": 2, "name": "Pia", "number": -1}}}}
                """
            try await Scenario.play(
                [
                    sync(
                        "entries", since: 0, expect: #""rows": false"#,
                        then: answer(2, Self.good[0], bad)),
                    sync(
                        "entries again", since: 0, expect: #""rows": false"#,
                        then: answer(2, Self.good[0], bad)),
                    sync("rows", since: 0, expect: #""rows": true"#, then: answer(2, rows)),
                    sync(
                        "the device goes on", since: 2, expect: #""rows": false"#,
                        then: answer(3, set(3, update: [2: "Doves"]))),
                    sync("and pushes", since: 3, expect: #""body.changeSets.count": 1"#),
                ].joined(separator: ",")
            ) { (scenario) async throws in
                #expect(try await scenario.client.sync() == 2)
                same(try await scenario.teams, ["1 Crows", "2 Bees"])
                same(try await scenario.players, [])
                #expect(try await scenario.client.sync() == 3)
                try await scenario.client.write { try $0.insert("teams", ["name": "Ibises"]) }
                #expect(try await scenario.client.sync() == 4)
                #expect(try await scenario.client.status().outbox == 0)
            }
        }
    }
}
