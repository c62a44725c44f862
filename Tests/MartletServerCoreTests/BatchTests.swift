import Foundation
import MartletModel
import MartletProtocol
import SetTexts
import Testing

@testable import MartletEmbedded
@testable import MartletServerCore

@Suite("Batches of requests")
struct BatchTests {
    private func request(
        _ client: String?, _ sets: [SetText], at revision: Revision = 0, acknowledged: Int? = nil
    ) -> String {
        var head = client.map { ["\"clientId\":\"\($0)\""] } ?? []
        head.append("\"maxRevision\":\(revision)")
        if let acknowledged { head.append("\"acknowledged\":\(acknowledged)") }
        let list = sets.map(\.description).joined(separator: ",")
        return "{\(head.joined(separator: ",")),\"changeSets\":[\(list)]}"
    }

    private func counting(_ server: TestServer) throws -> (CountingStorage, DataSetNode) {
        let storage = CountingStorage(server.store)
        let node = try DataSetNode(
            storage: storage, log: EmbeddedLog(path: server.path, vfs: nil), rules: .everything,
            cacheBytes: 1 << 20)
        return (storage, node)
    }

    private func fates(
        _ results: [Result<PreparedAnswer, Problem>], of requests: [AdmittedRequest]
    ) throws -> [String] {
        try zip(results, requests).map { result, request in
            switch result {
            case .failure(let problem): return problem.kind
            case .success(let answer):
                let sets = try SyncCoder.decodeAnswer(answer.body).changeSets
                return request.request.changeSets.map { sent in
                    sets.last {
                        $0.identifier == sent.identifier
                            && ($0.identifier != nil || $0.sequence == sent.sequence)
                    }.map { "\($0.fate) \($0.message ?? "")" } ?? "nothing"
                }.joined(separator: "; ")
            }
        }
    }

    @Test("a batch compiles nothing that the batches before have compiled")
    func compiled() throws {
        let server = try TestServer(
            "CREATE TABLE nodes (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES nodes(id))")
        for round in 1...5 {
            if round == 3 { _ = server.store.takeRecompilations() }
            // The child comes first: foreign keys are deferred in each batch.
            let set = SetText("s\(round)", sequence: round)
                .create("nodes", "-\(2 * round)", #""parent":-\#(2 * round + 1)"#)
                .create("nodes", "-\(2 * round + 1)", #""parent":null"#)
            #expect(try server.send(set).conflict == false)
        }
        #expect(server.store.takeRecompilations() == 0)
    }

    @Test("one request for facts and one application, however many devices")
    func calls() throws {
        let server = try TestServer(RandomSets.schema)
        let (storage, node) = try counting(server)
        for round in 0..<2 {
            storage.forget()
            let requests = try (1...32).map { device in
                try server.admitted(
                    request(
                        "d\(device)",
                        [
                            SetText("s\(device)-\(round)", sequence: round + 1).create(
                                "players", "-\(round + 1)", #""name":"P""#)
                        ], acknowledged: round))
            }
            let results = node.process(requests, now: 1)
            for result in results { #expect(try result.get().accepted == 1) }
            #expect(storage.calls["facts"] == [32])
            #expect(storage.calls["apply"] == [32])
            #expect(storage.calls["devices"] == [32])
            #expect(storage.count("register") == (round == 0 ? 32 : 0))
            #expect(storage.count("acknowledge") == (round == 0 ? 32 : 32))
            #expect(storage.count("begin") + storage.count("commit") == 2)
            #expect(storage.count("truths") == 0)
        }
    }

    @Test("the truths of all refused sets are one request")
    func truths() throws {
        let server = try TestServer(RandomSets.schema)
        try server.send(SetText("a", sequence: 1).create("teams", "-1", #""name":"A""#))
        let (storage, node) = try counting(server)
        let requests = try (1...4).map { device in
            try server.admitted(
                request(
                    "r\(device)",
                    [
                        SetText("x\(device)", sequence: 1).update(
                            "teams", "1", #""revision":0,"name":"B""#),
                        SetText("y\(device)", sequence: 2).delete("teams", "77"),
                    ]))
        }
        for result in node.process(requests, now: 1) {
            #expect(try result.get().refused == [.stale: 2])
        }
        #expect(storage.calls["truths"] == [8])
        #expect(storage.calls["facts"] == [8])
        #expect(storage.count("apply") == 0)
    }

    @Test("a run ends before a set that needs what it did, and goes on behind it")
    func runs() throws {
        let server = try TestServer(RandomSets.schema)
        let (storage, node) = try counting(server)
        let requests = try [
            request("d1", [SetText("a", sequence: 1).create("teams", "-1", #""name":"A""#)]),
            request("d2", [SetText("b", sequence: 1).create("teams", "-1", #""name":"B""#)]),
            request("d1", [SetText("c", sequence: 2).update("teams", "-1", #""revision":0"#)]),
            request("d3", [SetText("d", sequence: 1).create("words", "w")]),
            request("d4", [SetText("e", sequence: 1).create("words", "w")]),
        ].map { try server.admitted($0) }
        let results = node.process(requests, now: 1)
        #expect(
            try fates(results, of: requests) == [
                "accepted 1 ", "accepted 2 ", "accepted 3 ", "accepted 4 ",
                "stale a record of “words” with the new record's id exists already",
            ])
        #expect(storage.calls["facts"] == [5, 1, 1])
        #expect(storage.calls["apply"] == [2, 2])
    }

    @Test("sets behind one that the storage refuses are judged again, and go in their order")
    func refusedByTheStorage() throws {
        let server = try TestServer(RandomSets.schema)
        let (storage, node) = try counting(server)
        storage.refusals["b"] = Refusal(.busy, "locked", retryAfter: 1)
        storage.refusals["d"] = Refusal(.constraint, "no")
        let requests = try [
            request(
                "d1",
                [
                    SetText("a", sequence: 1).create("players", "-1"),
                    SetText("b", sequence: 2).create("players", "-2"),
                    SetText("c", sequence: 3).update("teams", "99", #""revision":0"#),
                    SetText("d", sequence: 4).create("players", "-4"),
                    SetText("e", sequence: 5).update("players", "-2", #""revision":0"#),
                    SetText("f", sequence: 6).create("players", "-6"),
                ])
        ].map { try server.admitted($0) }
        let answer = try SyncCoder.decodeAnswer(
            node.process(requests, now: 1)[0].get().body)
        #expect(
            answer.changeSets.map { "\($0.identifier ?? "-") \($0.fate)" } == [
                "a accepted 1", "f accepted 2", "b busy", "c stale", "d constraint",
                "e dependency",
            ])
        #expect(answer.changeSets.last?.retryAfter == 1)
        #expect(storage.calls["apply"] == [3, 1, 1])
        // Only what is final is remembered.
        #expect(
            try server.rows("SELECT identifier FROM martlet_refusals ORDER BY number") == "c\nd")
    }

    @Test("a number or an id of an earlier request of the batch counts")
    func acrossRequests() throws {
        let server = try TestServer(RandomSets.schema)
        let (_, node) = try counting(server)
        let bare = SetText(sequence: 8).create("teams", "-8", #""name":"H""#)
        let requests = try [
            request("d1", [SetText("a", sequence: 1).create("teams", "-1", #""name":"A""#)]),
            // The id is a guess, and a right one.
            request("d2", [SetText("b").update("teams", "1", #""revision":1,"name":"B""#)]),
            request("d1", [SetText("c", sequence: 1).create("words", "c")]),
            request(
                "d1", [SetText("d", sequence: 2).create("players", "-1", #""team_id":-1"#)]),
            request("d3", [SetText("e").delete("teams", "1", #""revision":2"#)]),
            request("d1", [SetText("f", sequence: 3).create("teams", "-1")]),
            request("d4", [bare, bare]),
            request("d4", [bare]),
        ].map { try server.admitted($0) }
        #expect(
            try fates(node.process(requests, now: 1), of: requests) == [
                "accepted 1 ", "accepted 2 ", "identityReused", "accepted 3 ",
                "stale deleting would change a record of “players” the device had not seen in its "
                    + "present state",
                "invalid a new record of “teams” has a temporary id this device used before",
                "accepted 4 ; accepted 4 ", "accepted 4 ",
            ])
    }

    @Test("a device's name is one person's, within a batch and behind it")
    func anotherPerson() throws {
        let server = try TestServer(RandomSets.schema)
        let (_, node) = try counting(server)
        let other = Principal(name: "another tablet", user: "bob")
        func word(_ name: String, _ sequence: Int, as user: Principal) throws -> AdmittedRequest {
            let set = SetText(name, sequence: sequence).create("words", name)
            return try server.admitted(request("d1", [set]), as: user)
        }
        let requests = try [word("a", 1, as: .ada), word("b", 2, as: other)]
        #expect(
            try fates(node.process(requests, now: 1), of: requests) == [
                "accepted 1 ", "clientBound",
            ])
        let later = try [word("c", 2, as: other), word("d", 2, as: .ada)]
        #expect(
            try fates(node.process(later, now: 2), of: later) == ["clientBound", "accepted 2 "])
    }

    @Test("what a deletion takes along is gone for the sets behind it")
    func deletions() throws {
        let server = try TestServer(RandomSets.schema)
        try server.send(SetText("a", sequence: 1).create("teams", "-1", #""name":"A""#))
        try server.send(
            SetText("b", sequence: 2).create("players", "-1", #""team_id":1"#))
        let (_, node) = try counting(server)
        let requests = try [
            request("d2", [SetText("c").delete("teams", "1", #""revision":1"#)], at: 2),
            request("d3", [SetText("d").update("players", "1", #""revision":2"#)], at: 2),
        ].map { try server.admitted($0) }
        #expect(
            try fates(node.process(requests, now: 1), of: requests) == [
                "accepted 3 ",
                "stale a record of “players” the set would update does not exist",
            ])
    }

    @Test("a set behind one that waits may wait, too")
    func waitingSets() throws {
        let server = try TestServer(RandomSets.schema)
        let (_, node) = try counting(server)
        let requests = try [
            request(
                "d1",
                [
                    SetText("a", sequence: 1).create("words", "a"),
                    SetText("b", sequence: 2, after: "x").create("teams", "-1"),
                    SetText("c", sequence: 3).update("teams", "-1", #""revision":0"#),
                ])
        ].map { try server.admitted($0) }
        let answer = try SyncCoder.decodeAnswer(
            node.process(requests, now: 1)[0].get().body)
        #expect(answer.changeSets.map(\.fate) == ["accepted 1", "dependency", "dependency"])
        #expect(answer.changeSets.map(\.retryAfter) == [nil, 1, 1])
    }

    @Test(
        "a set that was put off has the verdict on its copy, if the batch has a copy of its request"
    )
    func copies() throws {
        let server = try TestServer(RandomSets.schema)
        let (_, node) = try counting(server)
        // Each copy gets one set further.
        node.share.mostSteps = 1
        let body = request(
            "d1",
            ["a", "b", "c"].enumerated().map { index, name in
                SetText(name, sequence: index + 1).create("words", name)
            })
        let requests = try [body, body].map { try server.admitted($0) }
        let answers = try node.process(requests, now: 1).map {
            try SyncCoder.decodeAnswer($0.get().body)
        }
        for answer in answers {
            #expect(answer.maxRevision == 2)
            #expect(answer.changeSets.map(\.fate) == ["accepted 1", "accepted 2", "busy"])
        }
    }

    @Test("a schema with triggers ends a run with every set")
    func triggersEndRun() throws {
        let server = try TestServer(
            """
            CREATE TABLE items (id INTEGER PRIMARY KEY, text TEXT);
            CREATE TABLE counts (id INTEGER PRIMARY KEY, number INTEGER);
            CREATE TRIGGER counting AFTER INSERT ON items
            BEGIN UPDATE counts SET number = number + 1; END;
            """)
        try server.send(SetText("a", sequence: 1).create("counts", "-1", #""number":0"#))
        let (_, node) = try counting(server)
        let requests = try [
            request("d1", [SetText("b", sequence: 2).create("items", "-1")], at: 1),
            request(
                "d2",
                [SetText("c", sequence: 1).update("counts", "1", #""revision":1,"number":7"#)],
                at: 1),
        ].map { try server.admitted($0) }
        #expect(
            try fates(node.process(requests, now: 1), of: requests) == [
                "accepted 2 ",
                "stale someone else changed a record of “counts” the set would update",
            ])
    }
}

extension BatchTests {
    /// Everything the server keeps.
    private func dump(_ server: TestServer) throws -> String {
        try [
            "SELECT 't', * FROM teams", "SELECT 'p', * FROM players", "SELECT 'n', * FROM notes",
            "SELECT 'w', * FROM words ORDER BY id",
            "SELECT revision, device, identifier, sequence, temporaries, hex(body) FROM martlet_log",
            "SELECT * FROM martlet_ids ORDER BY 1, 2, 3",
            "SELECT * FROM martlet_records ORDER BY 1, 2",
            """
            SELECT device, sequence, identifier, reason, message FROM martlet_refusals \
            ORDER BY identifier, device, sequence
            """,
            "SELECT number, client_id, principal FROM martlet_devices",
        ].map { try server.rows($0) }.joined(separator: "\n--\n")
    }

    @Test("many requests in one batch end as they do one after the other", arguments: 0..<6)
    func likeOneByOne(seed: UInt64) throws {
        var sets = RandomSets(seed: seed)
        let together = try TestServer(RandomSets.schema)
        let alone = try TestServer(RandomSets.schema)
        for round in 0..<40 {
            let head = together.node.head.revision
            let revisions = try RandomSets.revisions(on: together)
            let texts = sets.requests(at: head, revisions: revisions)
            let now = Int64(round)
            let requests = try texts.map { try together.admitted($0) }
            let batch = together.node.process(requests, now: now)
            var single: [Result<PreparedAnswer, Problem>] = []
            for request in requests { single += alone.node.process([request], now: now) }
            #expect(try fates(batch, of: requests) == fates(single, of: requests))
            let (first, second) = (try dump(together), try dump(alone))
            try #require(first == second, "seed \(seed), round \(round)")
        }
        #expect(together.node.head.revision > 20)
        #expect(together.node.head == alone.node.head)
    }
}
