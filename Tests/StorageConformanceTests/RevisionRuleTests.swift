import MartletModel
internal import MartletProtocol
import SetTexts
import Testing
import TextComparison

@testable import MartletServerCore

@Suite("Revisions of records")
struct RevisionRuleTests {
    static let schema = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
        CREATE TABLE notes (id TEXT PRIMARY KEY, body TEXT);
        """

    static func server(_ kind: StorageKind) async throws -> TestDataSet {
        let server = try await TestDataSet(kind, schema)
        try server.send(SetText().create("teams", "-1", #""name":"Reds""#))
        return server
    }

    @Test(
        "an update based on the newest revision is accepted and gives the record the new one",
        arguments: StorageKind.all)
    func fresh(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let set = try server.send(
            SetText().update("teams", "1", #""revision":1,"name":"Blues""#), from: "d2")
        #expect(set.fate == "accepted 2")
        #expect(set.content == "teams update [1] 1@2(name=Blues)")
        expectText(
            try server.text(),
            """
            teams 1 @2 by d2, by others @1: name Blues
            log 1, by d1: teams create [1] 1@1(name=Reds)
            log 2, by d2: teams update [1] 1@2(name=Blues)
            teams -1 of d1 is 1
            device d1
            device d2
            """)
    }

    @Test(
        "an update based on an older revision than someone else's change is refused whole",
        arguments: StorageKind.all)
    func staleUpdate(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        try server.send(SetText().update("teams", "1", #""revision":1,"name":"Blues""#), from: "d2")
        let set = try server.send(
            SetText().create("teams", "-2", #""name":"New""#)
                .update("teams", "1", #""revision":1,"city":"Rome""#), from: "d1", at: 1)
        #expect(set.fate == "stale")
        #expect(set.conflict == true)
        #expect(set.content == "teams update [1] delete [-2] 1@2(name=Blues)")
        expectText(
            try server.text(),
            """
            teams 1 @2 by d2, by others @1: name Blues
            log 1, by d1: teams create [1] 1@1(name=Reds)
            log 2, by d2: teams update [1] 1@2(name=Blues)
            teams -1 of d1 is 1
            device d1
            device d2
            """)
    }

    @Test(
        "a device never conflicts with its own work: queued edits carry the same base",
        arguments: StorageKind.all)
    func ownWork(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let answer = try server.exchange(
            [
                SetText().update("teams", "1", #""revision":1,"name":"A""#),
                SetText().update("teams", "1", #""revision":1,"name":"B""#),
                SetText().update("teams", "1", #""revision":0,"name":"C""#),
            ], from: "d1")
        #expect(answer.changeSets.map(\.fate) == ["accepted 2", "accepted 3", "accepted 4"])
        expectText(
            try server.text(),
            """
            teams 1 @4 by d1: name C
            log 1, by d1: teams create [1] 1@1(name=Reds)
            log 2, by d1: teams update [1] 1@2(name=A)
            log 3, by d1: teams update [1] 1@3(name=B)
            log 4, by d1: teams update [1] 1@4(name=C)
            teams -1 of d1 is 1
            device d1
            """)
    }

    @Test(
        "another's change between a device's own is not overridden by its queued edit",
        arguments: StorageKind.all)
    func ownWorkAround(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        try server.send(SetText().update("teams", "1", #""revision":1,"name":"A""#), from: "d1")
        try server.send(SetText().update("teams", "1", #""revision":2,"name":"B""#), from: "d2")
        // d1 saw 3 in the answer to this one, but its queued edit was made before.
        let late = try server.send(
            SetText().update("teams", "1", #""revision":2,"name":"C""#), from: "d1")
        #expect(late.fate == "stale")
        let informed = try server.send(
            SetText().update("teams", "1", #""revision":3,"name":"D""#), from: "d1")
        #expect(informed.fate == "accepted 4")
        let queued = try server.send(
            SetText().update("teams", "1", #""revision":3,"name":"E""#), from: "d1")
        #expect(queued.fate == "accepted 5")
        expectText(
            try server.text(),
            """
            teams 1 @5 by d1, by others @3: name E
            log 1, by d1: teams create [1] 1@1(name=Reds)
            log 2, by d1: teams update [1] 1@2(name=A)
            log 3, by d2: teams update [1] 1@3(name=B)
            log 4, by d1: teams update [1] 1@4(name=D)
            log 5, by d1: teams update [1] 1@5(name=E)
            teams -1 of d1 is 1
            device d1
            device d2
            """)
    }

    @Test("without a client id there is no own work", arguments: StorageKind.all)
    func anonymous(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        func update(_ name: String, base: Int) throws -> String {
            let set = SetText().update("teams", "1", #""revision":\#(base),"name":"\#(name)""#)
            let answer = try server.answer(
                #"{"maxRevision":\#(server.node.head.revision),"changeSets":[\#(set)]}"#)
            return answer.changeSets.last?.fate ?? ""
        }
        #expect(try update("A", base: 1) == "accepted 2")
        #expect(try update("B", base: 1) == "stale")
        #expect(try update("B", base: 2) == "accepted 3")
    }

    @Test(
        "an update without a revision, with one that never was, or a negative one is invalid",
        arguments: StorageKind.all,
        [#""name":"X""#, #""revision":2,"name":"X""#, #""revision":-1,"name":"X""#])
    func invalidBase(kind: StorageKind, attributes: String) async throws {
        let server = try await Self.server(kind)
        try server.send(SetText().create("teams", "-2"), from: "d2")
        let set = try server.send(SetText().update("teams", "1", attributes), from: "d2")
        #expect(set.fate == "invalid")
        expectText(
            try server.text(),
            """
            teams 1 @1 by d1: name Reds
            teams 2 @2 by d2
            log 1, by d1: teams create [1] 1@1(name=Reds)
            log 2, by d2: teams create [2] 2@2()
            teams -1 of d1 is 1
            teams -2 of d2 is 2
            device d1
            device d2
            """)
    }

    @Test(
        "records that never were or were deleted cannot be updated; the truth says so",
        arguments: StorageKind.all)
    func missingRecordsOfUpdate(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let never = try server.send(SetText().update("teams", "9", #""revision":0,"name":"X""#))
        #expect(never.fate == "stale")
        #expect(never.content == "teams delete [9]")
        try server.send(SetText().delete("teams", "1", #""revision":1"#), from: "d2")
        let gone = try server.send(
            SetText().update("teams", "1", #""revision":1,"name":"X""#), from: "d1")
        #expect(gone.fate == "stale")
        #expect(gone.content == "teams delete [1]")
    }

    @Test(
        "a delete is judged by its revision, else by what the set had seen, else the request",
        arguments: StorageKind.all)
    func deletes(kind: StorageKind) async throws {
        func prepared() async throws -> TestDataSet {
            let server = try await Self.server(kind)
            try server.send(
                SetText().update("teams", "1", #""revision":1,"name":"B""#), from: "d2")
            return server
        }
        var server = try await prepared()
        #expect(try server.send(SetText().delete("teams", "1", #""revision":1"#)).fate == "stale")
        #expect(
            try server.send(SetText().delete("teams", "1", #""revision":2"#)).fate == "accepted 3")
        server = try await prepared()
        #expect(try server.send(SetText(seen: 1).delete("teams", "1")).fate == "stale")
        #expect(try server.send(SetText(seen: 2).delete("teams", "1")).fate == "accepted 3")
        server = try await prepared()
        #expect(try server.send(SetText().delete("teams", "1"), at: 1).fate == "stale")
        #expect(try server.send(SetText().delete("teams", "1"), at: 2).fate == "accepted 3")
        expectText(
            try server.text(),
            """
            teams 1 @3 by d1, by others @2, deleted
            log 1, by d1: teams create [1] 1@1(name=Reds)
            log 2, by d2: teams update [1] 1@2(name=B)
            log 3, by d1: teams delete [1]
            teams -1 of d1 is 1
            device d1
            device d2
            """)
        #expect(try server.send(SetText().delete("teams", "1"), at: 3).fate == "stale")
    }

    @Test("what a set has seen cannot be newer than its device", arguments: StorageKind.all)
    func seenAhead(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        try server.send(SetText().create("teams", "-2"), from: "d2")
        let set = try server.send(SetText(seen: 2).delete("teams", "1"), at: 1)
        #expect(set.fate == "invalid")
    }

    @Test(
        "a text key that exists, or was deleted unseen, cannot be created",
        arguments: StorageKind.all)
    func textKeysExistingOrDeleted(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        #expect(
            try server.send(SetText().create("notes", "n1", #""body":"a""#)).fate == "accepted 1")
        let twice = try server.send(SetText().create("notes", "n1", #""body":"b""#), from: "d2")
        #expect(twice.fate == "stale")
        #expect(twice.content == "notes update [n1] n1@1(body=a)")
        try server.send(SetText().delete("notes", "n1", #""revision":1"#), from: "d2")
        let unseen = try server.send(SetText(seen: 1).create("notes", "n1", #""body":"c""#))
        #expect(unseen.fate == "stale")
        let own = try server.send(
            SetText(seen: 1).create("notes", "n1", #""body":"d""#), from: "d2")
        #expect(own.fate == "accepted 3")
        try server.send(SetText().delete("notes", "n1", #""revision":3"#), from: "d2")
        let seen = try server.send(SetText(seen: 4).create("notes", "n1", #""body":"e""#))
        #expect(seen.content == "notes create [n1] n1@5(body=e)")
        expectText(
            try server.text(),
            """
            notes n1 @5 by d1: body e
            log 1, by d1: notes create [n1] n1@1(body=a)
            log 2, by d2: notes delete [n1]
            log 3, by d2: notes create [n1] n1@3(body=d)
            log 4, by d2: notes delete [n1]
            log 5, by d1: notes create [n1] n1@5(body=e)
            device d1
            device d2
            """)
    }

    @Test(
        "edits of a text key's new making are judged from it on, whatever became of it before",
        arguments: StorageKind.all)
    func madeAgain(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        try server.send(SetText().create("notes", "n1", #""body":"a""#), from: "d2")
        try server.send(SetText().delete("notes", "n1", #""revision":1"#), from: "d2")
        let answer = try server.exchange(
            [
                SetText(seen: 2).create("notes", "n1", #""body":"b""#),
                SetText(seen: 2).update("notes", "n1", #""revision":0,"body":"c""#),
                SetText(seen: 2).delete("notes", "n1", #""revision":0"#),
                SetText(seen: 2).create("notes", "n1", #""body":"d""#),
            ], from: "d1")
        #expect(
            answer.changeSets.suffix(4).map(\.fate)
                == ["accepted 3", "accepted 4", "accepted 5", "accepted 6"])
        expectText(
            try server.text(),
            """
            notes n1 @6 by d1: body d
            log 1, by d2: notes create [n1] n1@1(body=a)
            log 2, by d2: notes delete [n1]
            log 3, by d1: notes create [n1] n1@3(body=b)
            log 4, by d1: notes update [n1] n1@4(body=c)
            log 5, by d1: notes delete [n1]
            log 6, by d1: notes create [n1] n1@6(body=d)
            device d2
            device d1
            """)
        try server.send(SetText().update("notes", "n1", #""revision":6,"body":"e""#), from: "d2")
        let late = try server.send(
            SetText(seen: 2).update("notes", "n1", #""revision":0,"body":"f""#), from: "d1")
        #expect(late.fate == "stale")
    }

    @Test(
        "an update by the device's own temporary id needs no revision", arguments: StorageKind.all)
    func ownTemporary(kind: StorageKind) async throws {
        let server = try await Self.server(kind)
        let own = try server.send(SetText().update("teams", "-1", #""name":"Blues""#), from: "d1")
        #expect(own.fate == "accepted 2")
        #expect(own.content == "teams update [1] 1@2(name=Blues)")
        try server.send(SetText().update("teams", "1", #""revision":2,"name":"X""#), from: "d2")
        let unseen = try server.send(
            SetText(seen: 2).update("teams", "-1", #""name":"Y""#), from: "d1")
        #expect(unseen.fate == "stale")
        let seen = try server.send(
            SetText(seen: 3).update("teams", "-1", #""name":"Z""#), from: "d1")
        #expect(seen.fate == "accepted 4")
        let foreign = try server.send(SetText().update("teams", "-1", #""name":"Q""#), from: "d2")
        #expect(foreign.fate == "dependency")
    }
}
