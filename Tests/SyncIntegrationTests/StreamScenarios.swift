import Foundation
import Martlet
internal import MartletDevice
internal import MartletModel
import Testing

extension SyncIntegration {
    /// What a stream of deltas can bring.
    ///
    /// Each scenario begins with an exchange that brings nothing, and listens from version 0 on.
    @Suite("streams", .timeLimit(.minutes(5)))
    struct StreamScenarios {
        private static let begin = sync("begin", since: 0, then: answer(0))
        private static let idle = #"{"name": "idle", "on": "sync", "times": "any"}"#

        private static func script(_ steps: String...) -> String {
            ([begin] + steps).joined(separator: ",\n")
        }

        @Test("a stream is applied as it comes, and goes on with what others do")
        func asItComes() async throws {
            try await Scenario.live(
                Self.script(
                    stream(
                        "two batches", since: 0,
                        batch(0, 1, team(1, 1, "Ants"), team(1, 2, "Bees")),
                        batch(
                            1, 3, team(2, 1, "Crows", new: false),
                            #"{"v": 3, "e": "teams", "eid": "2", "op": "delete"}"#)), Self.idle)
            ) { (scenario) async throws in
                scenario.listen()
                try await scenario.until(revision: 3)
                same(try await scenario.teams, ["1 Crows"])
                try await scenario.client.write { try $0.insert("teams", ["name": "Doves"]) }
                try await scenario.until(revision: 4)
                same(try await scenario.teams, ["1 Crows", "3 Doves"])
            }
        }

        @Test(
            "out-of-order batches: a batch that leaves a gap is not applied, and the gap is fetched"
        )
        func gap() async throws {
            try await Scenario.live(
                Self.script(
                    stream(
                        "the second first", since: 0, batch(1, 2, team(2, 3, "Crows")),
                        #"{"hold": true}"#),
                    sync(
                        "the gap is fetched", since: 0,
                        then: answer(
                            2, set(1, create: [1: "Ants", 2: "Bees"]), set(2, create: [3: "Crows"]))
                    ))
            ) { (scenario) async throws in
                scenario.listen()
                try await scenario.until(revision: 2)
                same(try await scenario.teams, ["1 Ants", "2 Bees", "3 Crows"])
            }
        }

        @Test("out-of-order batches: an old batch that comes late moves nothing back")
        func lateBatch() async throws {
            try await Scenario.live(
                Self.script(
                    stream(
                        "late", since: 0, batch(0, 1, team(1, 1, "Ants")),
                        batch(1, 2, team(2, 1, "Bees", new: false)),
                        batch(0, 1, team(1, 1, "Ants")),
                        batch(2, 3, team(3, 2, "Crows"))))
            ) { (scenario) async throws in
                scenario.listen()
                try await scenario.until(revision: 3)
                same(try await scenario.teams, ["1 Bees", "2 Crows"])
            }
        }

        @Test("duplicate batches: each is applied once, also where it overlaps the one before")
        func duplicate() async throws {
            try await Scenario.live(
                Self.script(
                    stream(
                        "twice", since: 0, batch(0, 1, team(1, 1, "Ants")),
                        batch(
                            0, 2, team(1, 1, "Wasps"), team(2, 1, "Bees", new: false)),
                        batch(
                            0, 2, team(1, 1, "Wasps"), team(2, 1, "Bees", new: false)),
                        batch(0, 3, team(1, 1, "Wasps"), team(3, 2, "Crows"))))
            ) { (scenario) async throws in
                scenario.listen()
                try await scenario.until(revision: 3)
                same(try await scenario.teams, ["1 Bees", "2 Crows"])
            }
        }

        @Test(
            "failure in mid-transaction: a batch whose last delta fails leaves nothing, and is named"
        )
        func failing() async throws {
            try await Scenario.live(
                Self.script(
                    stream(
                        "bad", since: 0,
                        batch(
                            0, 2, team(1, 1, "Ants"), team(2, 1, "Bees", new: false),
                            upsert(2, 7, #""name": "Pia", "number": -1"#, type: "players")),
                        #"{"hold": true}"#),
                    sync(
                        "not now", since: 0,
                        then: #"{"status": 503, "problem": {"kind": "busy", "retryAfter": 1}}"#),
                    sync("mended", since: 0, then: answer(2, set(1, create: [1: "Ants"]), set(2))))
            ) { (scenario) async throws in
                scenario.listen()
                let failed = try await scenario.failure()
                #expect(failed.kind == .violation)
                #expect(failed.message.contains("players 7"), "\(failed.message)")
                let busy = try await scenario.failure()
                #expect(busy.kind == .busy)
                same(try await scenario.revision, 0)
                same(try await scenario.teams, [])
                try await scenario.until(revision: 2)
                same(try await scenario.teams, ["1 Ants"])
                same(try await scenario.players, [])
            }
        }

        @Test(
            "poison: a delta that fails twice is fetched as rows, quarantined, and the cursor moves on"
        )
        func poison() async throws {
            let rows = """
                {"difference": true, "revision": 1, "types": ["teams", "players"],
                 "teams": {"create": [], "update": [1], "delete": [],
                           "attributes": {"1": {"revision": 1, "name": "Ants"}}},
                 "players": {"create": [], "update": [7], "delete": [],
                             "attributes": {"7": {"revision": 1, "name": "Pia", "number": -1}}}}
                """
            let entry = """
                {"revision": 1, "types": ["teams", "players"],
                 "teams": {"create": [1], "update": [], "delete": [],
                           "attributes": {"1": {"revision": 1, "name": "Ants"}}},
                 "players": {"create": [7], "update": [], "delete": [],
                             "attributes": {"7": {"revision": 1, "name": "Pia", "number": -1}}}}
                """
            try await Scenario.live(
                Self.script(
                    stream(
                        "poison", since: 0,
                        batch(
                            0, 1, team(1, 1, "Ants"),
                            upsert(1, 7, #""name": "Pia", "number": -1"#, type: "players")),
                        batch(1, 2, team(2, 2, "Bees")),
                        #"{"hold": true, "delay": 0}"#),
                    sync("once more", since: 0, expect: #""rows": false"#, then: answer(1, entry)),
                    sync("as rows", since: 0, expect: #""rows": true"#, then: answer(1, rows)),
                    sync(
                        "what came meanwhile", expect: #""since": {"atLeast": 1}, "rows": false"#,
                        times: "\"any\"",
                        then: answer(2, set(2, create: [2: "Bees"]))))
            ) { (scenario) async throws in
                scenario.listen()
                try await scenario.until { try await scenario.revision >= 1 }
                try await scenario.client.sync()
                same(try await scenario.revision, 2)
                same(try await scenario.teams, ["1 Ants", "2 Bees"])
                same(try await scenario.players, [])
                same(try await scenario.quarantined, ["players 7"])
            }
        }

        @Test(
            "poison that the author mends is taken in from the next version on, and is no longer quarantined"
        )
        func mended() async throws {
            let rows = """
                {"difference": true, "revision": 1, "types": ["players"],
                 "players": {"create": [], "update": [7], "delete": [],
                             "attributes": {"7": {"revision": 1, "name": "Pia", "number": -1}}}}
                """
            let bad = upsert(1, 7, #""name": "Pia", "number": -1"#, type: "players")
            try await Scenario.live(
                Self.script(
                    stream("poison", since: 0, batch(0, 1, bad), #"{"hold": true}"#),
                    sync(
                        "once more", since: 0, expect: #""rows": false"#,
                        then: answer(
                            1,
                            """
                            {"revision": 1, "types": ["players"],
                             "players": {"create": [7], "update": [], "delete": [],
                               "attributes": {"7": {"revision": 1, "name": "Pia", "number": -1}}}}
                            """)),
                    sync("as rows", since: 0, expect: #""rows": true"#, then: answer(1, rows)),
                    sync(
                        "mended", since: 1,
                        then: answer(
                            2,
                            """
                            {"revision": 2, "types": ["players"],
                             "players": {"create": [], "update": [7], "delete": [],
                               "attributes": {"7": {"revision": 2, "number": 9}}}}
                            """)))
            ) { (scenario) async throws in
                scenario.listen()
                try await scenario.until(revision: 1)
                same(try await scenario.quarantined, ["players 7"])
                try await scenario.client.sync()
                same(try await scenario.revision, 2)
                same(try await scenario.players, ["7 Pia 9 null"])
                same(try await scenario.quarantined, [])
            }
        }

        @Test("truncated batches: a stream cut at any byte is taken up again where the device is")
        func cutStreamAtAnyByte() async throws {
            let first = batch(0, 1, team(1, 1, "Ants"), team(1, 2, "Bees"))
            let bytes = [0, 1, 5, 30, 60, 120, 170, 221]
            let cuts = bytes.map { byte in
                stream(
                    "cut at \(byte)", since: 0,
                    batch(0, 1, team(1, 1, "Ants"), team(1, 2, "Bees"), cut: byte))
            }
            let resumed = [
                stream(
                    "the first whole", since: 0, first, batch(1, 2, team(2, 3, "Crows"), cut: 70)),
                stream("the second whole", since: 1, batch(1, 2, team(2, 3, "Crows"))),
            ]
            try await Scenario.live(
                ([Self.begin, Self.idle] + cuts + resumed).joined(separator: ",\n")
            ) { (scenario) async throws in
                scenario.listen()
                try await scenario.until(revision: 2)
                same(try await scenario.teams, ["1 Ants", "2 Bees", "3 Crows"])
            }
        }

        @Test("a batch that never gets through a stream is fetched by an exchange, and it goes on")
        func neverWhole() async throws {
            let cut = batch(0, 1, team(1, 1, "Ants"), cut: 80)
            try await Scenario.live(
                Self.script(
                    #"{"name": "cut", "on": "stream", "times": "any", "when": {"since": 0}, "#
                        + #""then": {"parts": [\#(cut)]}}"#,
                    sync("fetched", since: 0, then: answer(1, set(1, create: [1: "Ants"]))),
                    stream("behind it", since: 1, batch(1, 2, team(2, 2, "Bees"))))
            ) { (scenario) async throws in
                scenario.listen()
                try await scenario.until(revision: 2)
                same(try await scenario.teams, ["1 Ants", "2 Bees"])
            }
        }

        @Test(
            "malformed batches: what cannot be read is fetched by an exchange",
            arguments: [
                // Truncated in the event, no JSON, no batch.
                #"{"text": "id: 1\ndata: {\"from\": 0, \"deltas\": [{\"v\": 1\n\n"}"#,
                #"{"text": "id: 1\ndata: <html>\n\n"}"#, #"{"text": "id: 1\ndata: {}\n\n"}"#,
                // Contradictory: begins after its end, a delta outside it, versions that go down.
                #"{"batch": {"from": 3, "deltas": [], "nextVersion": 1}}"#,
                batch(0, 1, team(2, 1, "Wasps")),
                batch(0, 2, team(2, 1, "Wasps"), team(1, 1, "Flies")),
                // A delta that says nothing, or of no record.
                batch(0, 1, #"{"v": 1, "e": "teams", "eid": "1", "op": "upsert"}"#),
                batch(0, 1, #"{"v": 1, "e": "teams", "eid": "one", "op": "upsert", "p": "{}"}"#),
                batch(0, 1, #"{"v": 1, "e": "teams", "eid": "1", "op": "upsert", "p": "{"}"#),
            ])
        func malformedBatches(part: String) async throws {
            try await Scenario.live(
                Self.script(
                    stream("malformed", since: 0, part, #"{"hold": true}"#),
                    sync("fetched", since: 0, then: answer(1, set(1, create: [1: "Ants"]))),
                    Self.idle)
            ) { (scenario) async throws in
                scenario.listen()
                try await scenario.until(revision: 1)
                same(try await scenario.teams, ["1 Ants"])
            }
        }

        @Test("contradictory batches: one that makes and deletes a record ends without the record")
        func contradictory() async throws {
            try await Scenario.live(
                Self.script(
                    stream(
                        "both", since: 0,
                        batch(
                            0, 1, team(1, 1, "Ants"),
                            #"{"v": 1, "e": "teams", "eid": "1", "op": "delete"}"#,
                            team(1, 2, "Bees")),
                        batch(1, 2, #"{"v": 2, "e": "teams", "eid": "9", "op": "delete"}"#)))
            ) { (scenario) async throws in
                scenario.listen()
                try await scenario.until(revision: 2)
                same(try await scenario.teams, ["2 Bees"])
            }
        }

        @Test("a version from the future: the device does not jump, but fetches what is before it")
        func future() async throws {
            try await Scenario.live(
                Self.script(
                    stream(
                        "from the future", since: 0, batch(1_000, 1_001, team(1_001, 9, "Wasps")),
                        #"{"hold": true}"#),
                    sync("nothing there", since: 0, then: answer(1, set(1, create: [1: "Ants"]))),
                    sync("later", since: 1, then: answer(2, set(2, create: [2: "Bees"]))))
            ) { (scenario) async throws in
                scenario.listen()
                try await scenario.until(revision: 1)
                same(try await scenario.teams, ["1 Ants"])
                try await scenario.client.sync()
                same(try await scenario.teams, ["1 Ants", "2 Bees"])
            }
        }

        @Test("an update of a record the device does not have: what is missing is fetched as rows")
        func missingRecordIsFetched() async throws {
            let rows = """
                {"difference": true, "revision": 1, "types": ["teams"],
                 "teams": {"create": [], "update": [4], "delete": [],
                           "attributes": {"4": {"revision": 1, "name": "Crows"}}}}
                """
            try await Scenario.live(
                Self.script(
                    stream(
                        "update of nothing", since: 0, batch(0, 1, team(1, 4, "Crows", new: false)),
                        #"{"hold": true}"#),
                    sync(
                        "again", since: 0, expect: #""rows": false"#,
                        then: answer(1, set(1, update: [4: "Crows"]))),
                    sync("rows", since: 0, expect: #""rows": true"#, then: answer(1, rows)))
            ) { (scenario) async throws in
                scenario.listen()
                try await scenario.until(revision: 1)
                same(try await scenario.teams, ["4 Crows"])
            }
        }

        @Test("a missing parent: the batch is taken, and the child is there when the parent comes")
        func parent() async throws {
            try await Scenario.live(
                Self.script(
                    stream(
                        "child first", since: 0,
                        batch(
                            0, 1,
                            upsert(1, 7, #""name": "Pia", "number": 3, "team": 4"#, type: "players")
                        ),
                        batch(1, 2, team(2, 4, "Doves"))))
            ) { (scenario) async throws in
                scenario.listen()
                try await scenario.until(revision: 2)
                same(try await scenario.players, ["7 Pia 3 4"])
                same(try await scenario.teams, ["4 Doves"])
                // Nothing is left that a later save of the person's would stumble over.
                try await scenario.client.write { try $0.insert("teams", ["name": "Eagles"]) }
                #expect(try await scenario.client.sync() == 3)
            }
        }

        @Test("a stream that is refused for now is opened again; one that must not be is not")
        func refusedStream() async throws {
            try await Scenario.live(
                Self.script(
                    #"{"name": "busy", "on": "stream", "then": {"status": 503}}"#,
                    #"{"name": "hung up", "on": "stream", "then": {"hangUp": true}}"#,
                    stream("good", since: 0, batch(0, 1, team(1, 1, "Ants")), #"{"end": true}"#),
                    #"{"name": "signed out", "on": "stream", "then": {"status": 401}}"#, Self.idle)
            ) { (scenario) async throws in
                scenario.listen()
                try await scenario.until(revision: 1)
                let error = try await scenario.failure()
                #expect(error.kind == .unauthorized)
                same(try await scenario.teams, ["1 Ants"])
            }
        }
    }
}
