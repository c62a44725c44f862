import MartletModel
import MartletProtocol
import SetTexts
import Testing
import TextComparison

@testable import MartletServerCore

@Suite("Retries")
struct RetryTests {
    static let schema = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE players (
            id INTEGER PRIMARY KEY, name TEXT, team_id INTEGER REFERENCES teams (id));
        """

    @Test(
        "the same set again gets the same verdict, and nothing is applied twice",
        arguments: StorageKind.all, [false, true])
    func accepted(kind: StorageKind, restart: Bool) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        let set = SetText("a", sequence: 1).create("teams", "-1", #""name":"A""#)
        let first = try server.send(set, at: 0)
        try server.send(SetText("b", sequence: 2).create("teams", "-2"), from: "d2")
        if restart { try server.restart() }
        let again = try server.exchange([set], at: 0)
        #expect(again.changeSets.first == first)
        #expect(again.changeSets.count == 2)
        #expect(first.content == "teams create [1] 1@1(name=A)")
        #expect(first["teams"]?.entries.first?.oldID == .integer(-1))
        // A device that has the entry and lost the receipt gets it once more.
        let late = try server.exchange([set], at: 2)
        #expect(late.changeSets == [first])
        expectText(
            try server.text(),
            """
            teams 1 @1 by d1: name A
            teams 2 @2 by d2
            log 1, a/1 by d1: teams create [1] 1@1(name=A)
            log 2, b/2 by d2: teams create [2] 2@2()
            teams -1 of d1 is 1
            teams -2 of d2 is 2
            device d1
            device d2
            """)
    }

    @Test(
        "a refusal is remembered, its truth is built anew", arguments: StorageKind.all,
        [false, true])
    func refusedAgain(kind: StorageKind, restart: Bool) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        try server.send(SetText().create("teams", "-1", #""name":"A""#))
        try server.send(SetText().update("teams", "1", #""revision":1,"name":"B""#), from: "d2")
        let set = SetText("a", sequence: 9).update("teams", "1", #""revision":1,"name":"C""#)
        #expect(try server.send(set, from: "d3").fate == "stale")
        try server.send(SetText().delete("teams", "1", #""revision":2"#), from: "d2")
        if restart { try server.restart() }
        let again = try server.send(set, from: "d3")
        #expect(again.fate == "stale")
        #expect(again.message == "someone else changed a record of “teams” the set would update")
        #expect(again.content == "teams delete [1]")
    }

    @Test(
        "other content under a used identifier is refused and does not replace the verdict",
        arguments: StorageKind.all)
    func otherContent(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        let set = SetText("a", sequence: 1).create("teams", "-1", #""name":"A""#)
        let first = try server.send(set)
        let other = SetText("a", sequence: 1).create("teams", "-1", #""name":"B""#)
        #expect(try server.send(other).fate == "invalid")
        #expect(try server.exchange([set]).changeSets == [first])
        expectText(
            try server.text(),
            """
            teams 1 @1 by d1: name A
            log 1, a/1 by d1: teams create [1] 1@1(name=A)
            teams -1 of d1 is 1
            device d1
            """)
    }

    @Test("an identifier is bound to its principal, not to its device", arguments: StorageKind.all)
    func otherPrincipal(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        let set = SetText("a", sequence: 1).create("teams", "-1", #""name":"A""#)
        let first = try server.send(set)
        #expect(try server.exchange([set], from: "d2").changeSets == [first])
        let stranger = Principal(name: "other", user: "bob")
        let refused = try server.send(set, from: "d3", as: stranger)
        #expect(refused.fate == "invalid")
        expectText(
            try server.text(),
            """
            teams 1 @1 by d1: name A
            log 1, a/1 by d1: teams create [1] 1@1(name=A)
            teams -1 of d1 is 1
            device d1
            device d2
            device d3
            """)
    }

    @Test(
        "a number used for another set refuses the whole request: the file is a copy",
        arguments: StorageKind.all)
    func reusedSequence(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        try server.send(SetText("a", sequence: 1).create("teams", "-1"))
        try server.restart()
        let sets = """
            \(SetText("b", sequence: 2).create("teams", "-2")),\
            \(SetText("c", sequence: 1).create("teams", "-3"))
            """
        let problem = try server.problem(
            #"{"clientId":"d1","maxRevision":1,"changeSets":[\#(sets)]}"#)
        #expect(problem?.status == 409)
        #expect(problem?.kind == "identityReused")
        expectText(
            try server.text(),
            """
            teams 1 @1 by d1
            log 1, a/1 by d1: teams create [1] 1@1()
            teams -1 of d1 is 1
            device d1
            """)
        let other = try server.send(SetText("c", sequence: 1).create("teams", "-3"), from: "d2")
        #expect(other.fate == "accepted 2")
    }

    @Test("a number alone is memory enough", arguments: StorageKind.all)
    func sequenceOnly(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        let set = SetText(sequence: 4).create("teams", "-1", #""name":"A""#)
        let first = try server.send(set)
        try server.restart()
        #expect(try server.exchange([set]).changeSets == [first])
    }

    @Test("the same set twice in one batch is applied once", arguments: StorageKind.all)
    func twiceInBatch(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        let set = SetText("a", sequence: 1).create("teams", "-1", #""name":"A""#)
        let request = #"{"clientId":"d1","maxRevision":0,"changeSets":[\#(set),\#(set)]}"#
        let results = try server.process([request, request])
        let answers = try results.map { try SyncCoder.decodeAnswer($0.get().body) }
        #expect(answers[0] == answers[1])
        #expect(answers[0].changeSets.count == 1)
        expectText(
            try server.text(),
            """
            teams 1 @1 by d1: name A
            log 1, a/1 by d1: teams create [1] 1@1(name=A)
            teams -1 of d1 is 1
            device d1
            """)
    }

    @Test(
        "temporary ids of earlier sets resolve, also after a restart", arguments: StorageKind.all,
        [false, true])
    func temporaries(kind: StorageKind, restart: Bool) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        try server.send(SetText("a", sequence: 1).create("teams", "-1", #""name":"A""#))
        if restart { try server.restart() }
        let set = try server.send(
            SetText("b", sequence: 2).create("players", "-1", #""team_id":-1"#)
                .update("teams", "-1", #""revision":1,"name":"B""#))
        #expect(set.content == "players create [1] 1@2(team_id=1); teams update [1] 1@2(name=B)")
        let twice = try server.send(
            SetText("c", sequence: 3).update("teams", "-1", #""revision":1,"name":"C""#)
                .delete("teams", "1"))
        #expect(twice.fate == "invalid")
        let reused = try server.send(SetText("e", sequence: 5).create("teams", "-1"))
        #expect(reused.fate == "invalid")
        let foreign = try server.send(
            SetText("f", sequence: 1).update("teams", "-1", #""revision":1,"name":"D""#), from: "d2"
        )
        #expect(foreign.fate == "dependency")
    }

    @Test(
        "without a client id temporary ids live within their set only", arguments: StorageKind.all)
    func anonymousTemporaries(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        let sets = """
            \(SetText().create("teams", "-1")),\(SetText().create("players", "-1", #""team_id":-1"#)),\
            \(SetText().create("teams", "-1"))
            """
        let answer = try server.answer(#"{"maxRevision":0,"changeSets":[\#(sets)]}"#)
        #expect(answer.changeSets.map(\.fate) == ["accepted 1", "accepted 2", "dependency"])
        expectText(
            try server.text(),
            """
            teams 1 @1 by nobody
            teams 2 @2 by nobody
            log 1, by nobody: teams create [1] 1@1()
            log 2, by nobody: teams create [2] 2@2()
            """)
    }

    @Test(
        "a set waits for the one it names; decided is enough, even refused",
        arguments: StorageKind.all)
    func dependencyDecided(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        let waiting = SetText("b", sequence: 2, after: "a").create("teams", "-2")
        let early = try server.send(waiting)
        #expect(early.fate == "dependency")
        #expect(early.retryAfter == 1)
        #expect(early.types.isEmpty)
        // What only waited is not remembered.
        expectText(
            try server.text(),
            """
            device d1
            """)
        let refused = SetText("a", sequence: 1).update("teams", "7", #""revision":0"#)
        let answer = try server.exchange([refused, waiting])
        #expect(answer.changeSets.map(\.fate) == ["accepted 1", "stale"])
        let later = try server.send(SetText("c", sequence: 3, after: "a").create("teams", "-3"))
        #expect(later.fate == "accepted 2")
        // Without a device nothing is kept, but what one request brings is known in it.
        let sets = """
            \(SetText("x").update("teams", "7", #""revision":0"#)),\
            \(SetText("y", after: "x").create("teams", "-3"))
            """
        let anonymous = try server.answer(#"{"maxRevision":2,"changeSets":[\#(sets)]}"#)
        #expect(anonymous.changeSets.map(\.fate) == ["accepted 3", "stale"])
    }

    @Test(
        "what hangs on a waiting set's temporary ids waits too; on a refused one's it cannot",
        arguments: StorageKind.all)
    func dependentTemporaries(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        let child = SetText("c", sequence: 3).create("players", "-1", #""team_id":-2"#)
        let waiting = SetText("b", sequence: 2, after: "a").create("teams", "-2")
        let answer = try server.exchange([waiting, child])
        #expect(answer.changeSets.map(\.fate) == ["dependency", "dependency"])
        #expect(answer.changeSets.map(\.retryAfter) == [1, 1])
        let refused = SetText("a", sequence: 1).create("teams", "-2", #""colour":1"#)
        let second = try server.exchange([refused, child])
        #expect(second.changeSets.map(\.fate) == ["unknownAttribute", "dependency"])
        #expect(second.changeSets.map(\.retryAfter) == [nil, nil])
    }
}
