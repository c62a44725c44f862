import MartletModel
internal import MartletProtocol
import PostgresKit
import Testing

@testable import MartletPostgres
@testable import MartletServerCore

@Suite("What PostgreSQL's storage keeps of sets")
struct StoreMemoryTests {
    private static func team(_ number: Int, _ identifier: String, sequence: Int) -> String {
        TestStore.set(
            "teams", create: ["-\(number)"], #""-\#(number)":{"name":"\#(identifier)"}"#,
            identifier: identifier, sequence: sequence)
    }

    @Test("compaction empties bodies up to the floor, save those their author has not acknowledged")
    func compaction() async throws {
        try await StoreTests.on { (store: TestStore) throws in
            for number in 1...4 {
                try store.send(Self.team(number, "a\(number)", sequence: number))
            }
            try store.send(Self.team(9, "b", sequence: 1), from: "d2")
            let request = """
                {"clientId":"d1","maxRevision":5,"acknowledged":2,"changeSets":[\
                \(Self.team(5, "a5", sequence: 5))]}
                """
            _ = try store.process([request])[0].get()
            while !store.node.compact(keeping: 1).isDone {}
            #expect(store.store.floor == 5)
            #expect(
                try store.rows(
                    "SELECT revision FROM _martlet.log WHERE octet_length(body) = 0 ORDER BY 1")
                    == "1\n2")
            #expect(try store.rows("SELECT floor FROM _martlet.dataset") == "5")
            let later = """
                {"clientId":"d1","maxRevision":6,"acknowledged":4,"changeSets":[\
                \(Self.team(6, "a6", sequence: 6))]}
                """
            _ = try store.process([later])[0].get()
            #expect(
                try store.rows(
                    "SELECT revision FROM _martlet.log WHERE octet_length(body) = 0 ORDER BY 1")
                    == "1\n2\n3\n4")
            // What was emptied is known all the same.
            #expect(try store.send(Self.team(1, "a1", sequence: 1)).revision == 1)
            #expect(try store.rows("SELECT count(*) FROM teams") == "7")
        }
    }

    @Test("a refusal brings the truth, by permanent ids and with what a delete would take along")
    func truths() async throws {
        try await StoreTests.on { (store: TestStore) throws in
            try store.send(
                """
                {"types":["teams","players"],"teams":{"create":[-1,-2],"update":[],"delete":[],\
                "attributes":{"-1":{"name":"Red"},"-2":{"name":"Blue"}}},\
                "players":{"create":[-1],"update":[],"delete":[],"attributes":{"-1":{"team":-1}}}}
                """)
            try store.send(
                TestStore.set("players", update: ["1"], #""1":{"revision":1,"name":"Ann"}"#),
                from: "d2")
            let fate = try store.send(
                TestStore.set(
                    "teams", update: ["-2"], delete: ["1"],
                    #""-2":{"revision":1,"wins":4},"1":{"revision":1}"#, identifier: "x"), at: 1)
            #expect(fate.reason == .stale)
            #expect(fate.types.map(\.name) == ["teams", "players"])
            #expect(fate.types[0].update == [.integer(2), .integer(1)])
            #expect(fate.types[0].entries[0].oldID == .integer(-2))
            #expect(fate.types[1].update == [.integer(1)])
            #expect(fate.types[1].entries[0].attributes["name"] == "Ann")
            // It is remembered, and its words are the same.
            let again = try store.send(
                TestStore.set(
                    "teams", update: ["-2"], delete: ["1"],
                    #""-2":{"revision":1,"wins":4},"1":{"revision":1}"#, identifier: "x"), at: 1)
            #expect(again.message == fate.message)
        }
    }

    @Test("a device's records are found by the ids it gave them, in the same batch and later")
    func temporaries() async throws {
        try await StoreTests.on { (store: TestStore) throws in
            let fates = try store.exchange([
                Self.team(7, "a", sequence: 1),
                TestStore.set(
                    "players", create: ["-8"], #""-8":{"team":-7}"#, identifier: "b", sequence: 2),
                TestStore.set(
                    "teams", update: ["-7"], #""-7":{"revision":0,"wins":2}"#, identifier: "c",
                    sequence: 3),
            ])
            #expect(fates.map(\.reason) == [nil, nil, nil])
            #expect(try store.rows("SELECT team FROM players") == "1")
            #expect(try store.rows("SELECT wins FROM teams") == "2")
            let reused = try store.send(
                TestStore.set("teams", create: ["-7"], #""-7":{"name":"b"}"#))
            #expect(reused.fate.hasPrefix("invalid: a new record of “teams” has a temporary id"))
        }
    }

    @Test("names and ids that PostgreSQL cannot hold break nothing")
    func odd() async throws {
        try await StoreTests.on { (store: TestStore) throws in
            let set = TestStore.set(
                "teams", create: ["-1"], #""-1":{"name":"Red"}"#, identifier: #"a\u0000b"#)
            let refused = try store.process([
                #"{"clientId":"d1","maxRevision":0,"changeSets":[\#(set)]}"#
            ])[0]
            guard case .failure(let problem) = refused else {
                Issue.record("the set was taken under another name")
                return
            }
            #expect(problem.status == 400 && problem.kind == "invalidRequest")
            #expect(
                try store.send(
                    TestStore.set("teams", create: ["-1"], #""-1":{"name":"Red"}"#)
                ).fate == "accepted 1")
            let badge = TestStore.set(
                "badges", create: [#""\u0000""#], #""\u0000":{"team":1}"#, identifier: "c")
            #expect(try store.send(badge).reason == .invalid)
            let upper = TestStore.set(
                "badges", create: [#""00000000-0000-0000-0000-00000000000A""#],
                #""00000000-0000-0000-0000-00000000000A":{"team":1}"#, identifier: "d")
            #expect(try store.send(upper).reason == .invalid)
        }
    }

    @Test("a batch of sets by many devices is four round trips, whatever their number")
    func trips() async throws {
        try await StoreTests.on { (store: TestStore) throws in
            func batch(_ round: Int) throws -> Int {
                let requests = (1...32).map { device in
                    #"{"clientId":"d\#(device)","maxRevision":\#(store.node.head.revision),"changeSets":[\#(Self.team(round, "\(round)-\(device)", sequence: round))]}"#
                }
                let before = store.store.trips
                for answer in try store.process(requests) { _ = try answer.get() }
                return store.store.trips - before
            }
            _ = try batch(1)
            #expect(try batch(2) == 4)
            #expect(try batch(3) == 4)
        }
    }
}
