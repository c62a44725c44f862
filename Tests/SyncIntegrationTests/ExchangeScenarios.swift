import Foundation
import Martlet
import MartletDevice
internal import MartletModel
import Testing

extension SyncIntegration {
    /// What a server can do wrong in an answer to `POST /sync`.
    @Suite("exchanges", .timeLimit(.minutes(5)))
    struct ExchangeScenarios {
        private static let good = [
            set(1, create: [1: "Ants", 2: "Bees"]), set(2, update: [1: "Crows"]),
        ]

        @Test("duplicate batches: an answer that repeats what the device has changes nothing")
        func repeatedEntries() async throws {
            try await Scenario.play(
                [
                    sync("first", since: 0, then: answer(2, Self.good[0], Self.good[1])),
                    sync("the same again", since: 2, then: answer(2, Self.good[0], Self.good[1])),
                    sync(
                        "older ones before a new one", since: 2,
                        then: answer(3, Self.good[0], set(3, update: [2: "Doves"]))),
                ].joined(separator: ",")
            ) { (scenario) async throws in
                try await scenario.client.sync()
                try await scenario.client.sync()
                same(try await scenario.teams, ["1 Crows", "2 Bees"])
                #expect(try await scenario.client.sync() == 3)
                same(try await scenario.teams, ["1 Crows", "2 Doves"])
            }
        }

        @Test(
            "a data set that is another one stops the device, and its work stays")
        func other() async throws {
            try await Scenario.play(
                [
                    sync("first", since: 0, then: answer(2, Self.good[0], Self.good[1])),
                    sync(
                        "another", since: 2, expect: #""body.changeSets.count": 1"#,
                        then: #"{"status": 409, "problem": {"kind": "wrongDataSet"}}"#),
                ].joined(separator: ",")
            ) { (scenario) async throws in
                try await scenario.client.sync()
                try await scenario.client.write { try $0.insert("teams", ["name": "Finches"]) }
                let error = await #expect(throws: SyncError.self) {
                    try await scenario.client.sync()
                }
                #expect(error?.kind == .wrongDataSet)
                #expect(try await scenario.client.status().outbox == 1)
                #expect(try await scenario.teams.count == 3)
            }
        }

        @Test("truncated answers: cut in the connection or in the body, whatever the byte")
        func truncatedAnswers() async throws {
            let whole = answer(2, Self.good[0], Self.good[1]).dropLast()
            let bytes = [0, 1, 15, 40, 100, 180, 260, 330]
            let steps = bytes.flatMap { byte in
                [
                    sync("cut at \(byte)", since: 0, then: whole + ", \"cut\": \(byte)}"),
                    sync(
                        "truncated at \(byte)", since: 0, then: whole + ", \"truncate\": \(byte)}"),
                ]
            }
            try await Scenario.play(
                (steps + [sync("whole", since: 0, then: whole + "}")]).joined(separator: ",")
            ) { (scenario) async throws in
                // An exchange tries again by itself a few times, so it fails less often than answers are cut. The
                // scripted server complains in the end if it could not give all of them.
                var failures = 0
                while failures < steps.count, try await scenario.revision == 0 {
                    do {
                        try await scenario.client.sync()
                    } catch let error as SyncError {
                        failures += 1
                        #expect([.offline, .violation].contains(error.kind))
                        same(try await scenario.revision, 0)
                        same(try await scenario.teams, [])
                    }
                }
                #expect(failures > 0)
                same(try await scenario.revision, 2)
                same(try await scenario.teams, ["1 Crows", "2 Bees"])
            }
        }

        @Test("a cut after acceptance: the same set is sent again and is there once")
        func resent() async throws {
            try await Scenario.play(
                [
                    sync(
                        "accepted, but the answer is cut", expect: #""body.changeSets.count": 1"#,
                        then: #"{"log": true, "cut": 30}"#),
                    sync(
                        "the same again", expect: #""body.changeSets.0.sequence": 1"#,
                        then: #"{"log": true, "hangUp": true}"#),
                    sync("and again", expect: #""body.changeSets.0.sequence": 1"#),
                ].joined(separator: ",")
            ) { (scenario) async throws in
                try await scenario.client.write { try $0.insert("teams", ["name": "Geese"]) }
                // An exchange whose answer is cut tries again by itself.
                #expect(try await scenario.client.sync() == 1)
                same(try await scenario.teams, ["1 Geese"])
                #expect(try await scenario.client.status().outbox == 0)
            }
        }

        @Test(
            "malformed answers: what is no answer is not applied, and is asked for again",
            arguments: [
                #"{"text": "{\"maxRevision\": 1, \"changeSets\": [}"}"#, #"{"text": "<html>"}"#,
                #"{"text": ""}"#, #"{"answer": {"maxRevision": -4, "changeSets": []}}"#,
                #"{"answer": {"changeSets": []}}"#,
                #"{"answer": {"maxRevision": 1, "changeSets": [{"revision": 1, "types": [7]}]}}"#,
                #"{"answer": {"maxRevision": 1, "changeSets": []}, "headers": {"Content-Encoding": "gzip"}}"#,
            ])
        func malformedAnswers(then: String) async throws {
            try await Scenario.play(
                [
                    sync("malformed", since: 0, then: then),
                    sync("good", times: "\"any\"", then: answer(1, Self.good[0])),
                ].joined(separator: ",")
            ) { (scenario) async throws in
                // Whether the first try fails or goes on by itself, nothing wrong is applied.
                _ = try? await scenario.client.sync()
                #expect(try await scenario.client.sync() == 1)
                same(try await scenario.teams, ["1 Ants", "2 Bees"])
            }
        }

        @Test(
            "a server that is busy is asked again by itself, and not before it says",
            arguments: [(429, 1), (503, 1)])
        func busyServerIsAskedAgain(status: Int, seconds: Int) async throws {
            try await Scenario.play(
                [
                    sync(
                        "busy", since: 0,
                        then: """
                            {"status": \(status), "problem": {"kind": "busy", "retryAfter": \(seconds)}}
                            """),
                    sync("good", since: 0, times: "\"any\"", then: answer(1, Self.good[0])),
                ].joined(separator: ",")
            ) { (scenario) async throws in
                let clock = ContinuousClock()
                let start = clock.now
                scenario.client.start()
                let error = try await scenario.failure()
                #expect(error.kind == .busy && error.remedy == .wait)
                try await scenario.until(revision: 1)
                #expect(clock.now - start >= .seconds(seconds))
            }
        }

        @Test(
            "refused for now: a set is sent again after the seconds the server names; then parked")
        func refusedForNow() async throws {
            try await Scenario.play(
                [
                    sync(
                        "not yet", expect: #""body.changeSets.0.sequence": 1"#,
                        then: #"{"refuse": {"reason": "dependency", "retryAfter": 1}}"#),
                    sync(
                        "never", expect: #""body.changeSets.0.sequence": 1"#,
                        then: #"{"refuse": {"reason": "permission", "message": "Not you."}}"#),
                    sync("nothing left", expect: #""body.changeSets.count": 0"#, times: "\"any\""),
                ].joined(separator: ",")
            ) { (scenario) async throws in
                try await scenario.client.write { try $0.insert("teams", ["name": "Herons"]) }
                scenario.client.start()
                try await scenario.until { try await scenario.client.status().parked == 1 }
                same(try await scenario.teams, [])
                #expect(try await scenario.client.parked().first?.reason == .permission)
                try await scenario.client.sync()
            }
        }
    }
}
