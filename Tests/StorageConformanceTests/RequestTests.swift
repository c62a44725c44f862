import MartletModel
import MartletProtocol
import SetTexts
import Testing
import TextComparison

@testable import MartletServerCore

@Suite("Requests as a whole")
struct RequestTests {
    static let schema = "CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);"

    private func server(_ kind: StorageKind, _ count: Int) async throws -> TestDataSet {
        let server = try await TestDataSet(kind, Self.schema)
        for number in 0..<count {
            try server.send(SetText().create("teams", "-\(number + 1)", #""name":"\#(number)""#))
        }
        return server
    }

    @Test(
        "an answer names data set, lineage and schema to a device that speaks of itself",
        arguments: StorageKind.all)
    func head(kind: StorageKind) async throws {
        let server = try await server(kind, 1)
        let answer = try server.answer(#"{"clientId":"d2","maxRevision":1,"changeSets":[]}"#)
        #expect(answer.dataSet == TestDataSet.identity)
        #expect(answer.lineage == server.node.head.hash.text)
        #expect(answer.lineage?.count == 32)
        #expect(answer.schema == server.node.schema.fingerprint)
        let bare = try server.text(#"{"maxRevision":1,"changeSets":[]}"#)
        #expect(bare == #"{"maxRevision":1,"changeSets":[]}"#)
    }

    @Test(
        "what is made on top of a refused new record is refused, though another record has its key",
        arguments: StorageKind.all)
    func unmade(kind: StorageKind) async throws {
        let server = try await TestDataSet(
            kind, "CREATE TABLE notes (id TEXT PRIMARY KEY, body TEXT);")
        try server.send(SetText().create("notes", "k", #""body":"theirs""#))
        let sets = [
            SetText("b1").create("notes", "k", #""body":"mine""#),
            SetText("b2").update("notes", "k", #""body":"mine, edited","revision":1"#),
            SetText("b3").delete("notes", "k", #""revision":1"#),
            SetText("b4").create("notes", "other", #""body":"new""#),
        ]
        let request =
            #"{"clientId":"d2","maxRevision":1,"changeSets":[\#(sets.map(\.description).joined(separator: ","))]}"#
        // Once more as a device asks that has heard nothing: the verdicts are those of before.
        for _ in 0..<2 {
            let answer = try server.answer(request)
            let refused = answer.changeSets.filter { $0.conflict == true }
            #expect(refused.map(\.identifier) == ["b1", "b2", "b3"])
            #expect(refused.map(\.reason) == [.stale, .dependency, .dependency])
            #expect(try server.rows("SELECT body FROM notes ORDER BY id") == "theirs\nnew")
        }
        // Alone it is an edit of the record that its device has seen.
        let alone = SetText("b5").update("notes", "k", #""body":"seen","revision":1"#)
        #expect(try server.send(alone, from: "d2", at: 1).conflict != true)
    }

    @Test(
        "another data set, a future revision, another history, another's client id are refused",
        arguments: StorageKind.all, [true, false])
    func refusedRequests(kind: StorageKind, isPull: Bool) async throws {
        let server = try await server(kind, 3)
        let hashes = try (1...3).map { try #require(try server.lineage(at: $0)) }
        let set = isPull ? "" : SetText().create("teams", "-99").description
        func problem(_ members: String, as principal: Principal = .ada) throws -> String {
            let json = #"{"clientId":"d1",\#(members),"changeSets":[\#(set)]}"#
            let problem = try server.problem(json, as: principal)
            if isPull {
                guard
                    case .problem(let direct) = server.reader().answer(
                        to: try server.admitted(json, as: principal))
                else { return "answered" }
                #expect(direct == problem)
            }
            return "\(problem?.status ?? 0) \(problem?.kind ?? "")"
        }
        #expect(try problem(#""maxRevision":1,"dataSet":"ff""#) == "409 wrongDataSet")
        #expect(try problem(#""maxRevision":4"#) == "409 revisionAhead")
        #expect(try problem(#""maxRevision":2,"lineage":"\#(hashes[2])""#) == "409 lineage")
        #expect(try problem(#""maxRevision":3,"lineage":"\#(hashes[1])""#) == "409 lineage")
        #expect(try problem(#""maxRevision":0,"lineage":"\#(hashes[1])""#) == "409 lineage")
        #expect(try problem(#""maxRevision":1,"protocol":9"#) == "400 versionUnsupported")
        let bob = Principal(name: "x", user: "bob")
        #expect(try problem(#""maxRevision":1"#, as: bob) == "403 clientBound")
        // The same user with a new token is the same principal.
        let renewed = Principal(name: "new", user: "ada")
        let answer = try server.answer(
            #"{"clientId":"d1","maxRevision":2,"lineage":"\#(hashes[1])","changeSets":[\#(set)]}"#,
            as: renewed)
        #expect(answer.maxRevision == (isPull ? 3 : 4))
        #expect(try server.rows("SELECT count(*) FROM teams") == (isPull ? "3" : "4"))
    }

    @Test(
        "a device is known from its first change set on, and a user has only so many",
        arguments: StorageKind.all)
    func devices(kind: StorageKind) async throws {
        let server = try await server(kind, 1)
        server.node.devicesPerUser = 3
        let count = "SELECT count(*) FROM martlet_devices"
        let before = try #require(Int(try server.rows(count)))
        func request(_ device: String, _ set: SetText?) -> String {
            let sets = set.map(\.description) ?? ""
            return #"{"clientId":"\#(device)","maxRevision":0,"changeSets":[\#(sets)]}"#
        }
        for number in 0..<9 {
            // The second answer comes from memory.
            for _ in 0..<2 {
                #expect(try server.answer(request("made-up-\(number)", nil)).changeSets.count == 1)
            }
        }
        #expect(try server.rows(count) == "\(before)")
        guard
            case .answer = server.node.feed.answer(
                to: try server.admitted(request("made-up-1", nil)))
        else {
            Issue.record("a device that only asks is answered beside the writer")
            return
        }
        var number = 0
        func create() -> SetText {
            number += 1
            return SetText("n\(number)", sequence: number)
                .create("teams", "-1", #""name":"N\#(number)""#)
        }
        let bob = Principal(name: "x", user: "bob")
        for device in ["b1", "b2", "b3"] {
            let answer = try server.answer(request(device, create()), as: bob)
            #expect(answer.changeSets.last?.conflict != true)
        }
        let refused = try server.problem(request("b4", create()), as: bob)
        #expect(refused?.kind == "tooManyDevices")
        #expect(refused?.status == 403)
        #expect(try server.rows(count) == "\(before + 3)")
        // A known device continues, and any client may ask.
        _ = try server.answer(request("b4", nil), as: bob)
        // It asked as a stranger and then became known, so it gets its own set as its own.
        _ = try server.answer(request("made-up-1", create()))
        let own = try server.answer(request("made-up-1", nil)).changeSets.last
        #expect(own?.sequence == Int64(number))
        try server.restart()
        #expect(
            try server.answer(request("made-up-1", nil)).changeSets.last?.sequence == Int64(number))
        let other = try server.problem(request("made-up-1", nil), as: bob)
        #expect(other?.kind == "clientBound")
    }

    @Test(
        "a set that names itself as its dependency is refused for good, and keeps nothing else out",
        arguments: StorageKind.all)
    func needsItself(kind: StorageKind) async throws {
        let server = try await server(kind, 1)
        let answer = try server.exchange([
            SetText("a", sequence: 1, after: "a").create("teams", "-1"),
            SetText("b", sequence: 2).create("teams", "-2"),
            // The same characters, and another name.
            SetText("x\u{e9}", sequence: 3, after: "xe\u{301}").create("teams", "-3"),
        ])
        let refused = answer.changeSets.filter { $0.conflict == true }
        #expect(refused.map(\.reason) == [.dependency, .dependency])
        #expect(refused.map(\.retryAfter) == [nil, 1])
        #expect(refused[0].message == "the set names itself as the one that it depends on")
        #expect(try server.rows("SELECT count(*) FROM teams") == "2")
    }

    @Test(
        "names with NUL, which not every storage keeps, are refused before anything is done",
        arguments: StorageKind.all)
    func namesWithNUL(kind: StorageKind) async throws {
        let server = try await server(kind, 1)
        let set = SetText().create("teams", "-9").description
        func problem(_ client: String, _ members: String) throws -> String {
            let set = members.isEmpty ? "" : #"{\#(members),"types":[]}"#
            let sound = SetText("s").create("teams", "-8").description
            let sets = [sound, set].filter { !$0.isEmpty }.joined(separator: ",")
            let problem = try server.problem(
                #"{"clientId":"\#(client)","maxRevision":1,"changeSets":[\#(sets)]}"#)
            return "\(problem?.status ?? 0) \(problem?.kind ?? "")"
        }
        #expect(try problem(#"d\u0000"#, "") == "400 invalidRequest")
        #expect(try problem("d1", #""identifier":"a\u0000b""#) == "400 invalidRequest")
        #expect(
            try problem("d1", #""identifier":"a","dependencyIdentifier":"\u0000""#)
                == "400 invalidRequest")
        #expect(
            try server.problem(#"{"clientId":"d\u0000","maxRevision":1,"changeSets":[]}"#)?.kind
                == "invalidRequest")
        expectText(
            try server.text(),
            """
            teams 1 @1 by d1: name 0
            log 1, by d1: teams create [1] 1@1(name=0)
            teams -1 of d1 is 1
            device d1
            """)
        // What NUL used to become is a name like any other.
        let names = ["a\u{fffd}b", "ab"]
        for (index, name) in names.enumerated() {
            #expect(
                try server.send(SetText(name).create("teams", "-\(index + 2)")).fate.hasPrefix(
                    "accepted"))
        }
        #expect(try server.send(set).fate == "accepted 4")
    }

    @Test(
        "a pull writes nothing, by a known device or a new one",
        arguments: StorageKind.all)
    func pulls(kind: StorageKind) async throws {
        let server = try await server(kind, 2)
        let request = try server.admitted(#"{"clientId":"d1","maxRevision":0,"changeSets":[]}"#)
        guard case .answer(let answer) = server.node.feed.answer(to: request) else {
            Issue.record("the feed had no answer")
            return
        }
        let decoded = try SyncCoder.decodeAnswer(answer.body)
        #expect(decoded.changeSets.map(\.conflict) == [false, false])
        let new = try server.admitted(#"{"clientId":"d9","maxRevision":0,"changeSets":[]}"#)
        guard case .needsNode = server.node.feed.answer(to: new) else {
            Issue.record("the feed answered a device nobody knows")
            return
        }
        let other = try server.answer(#"{"clientId":"d9","maxRevision":0,"changeSets":[]}"#)
        #expect(other.changeSets.map(\.conflict) == [nil, nil])
        expectText(
            try server.text(),
            """
            teams 1 @1 by d1: name 0
            teams 2 @2 by d1: name 1
            log 1, by d1: teams create [1] 1@1(name=0)
            log 2, by d1: teams create [2] 2@2(name=1)
            teams -1 of d1 is 1
            teams -2 of d1 is 2
            device d1
            """)
        guard case .answer = server.node.feed.answer(to: new) else {
            Issue.record("the feed did not learn that nobody knows the device")
            return
        }
    }

    @Test("what a device acknowledges is kept", arguments: StorageKind.all)
    func acknowledged(kind: StorageKind) async throws {
        let server = try await server(kind, 1)
        _ = try server.answer(
            #"{"clientId":"d1","maxRevision":1,"acknowledged":7,"changeSets":[\#(SetText().create("teams", "-5"))]}"#
        )
        expectText(
            try server.text(),
            """
            teams 1 @1 by d1: name 0
            teams 2 @2 by d1
            log 1, by d1: teams create [1] 1@1(name=0)
            log 2, by d1: teams create [2] 2@2()
            teams -1 of d1 is 1
            teams -5 of d1 is 2
            device d1, has the answers up to 7
            """)
    }

    @Test("revisions have no gaps and the log chains its hashes", arguments: StorageKind.all)
    func chain(kind: StorageKind) async throws {
        let server = try await server(kind, 4)
        try server.send(SetText().update("teams", "99", #""revision":0"#))
        try server.send(SetText().create("teams", "-77"))
        var hash = LineageHash(origin: TestDataSet.identity)
        let entries = try server.log()
            .entries(from: 1, through: 99, maxBytes: .max)
        #expect(entries.map(\.revision) == [1, 2, 3, 4, 5])
        for entry in entries {
            hash = hash.appending(entry.body, identifier: entry.identifier)
            #expect(entry.hash == hash)
        }
        #expect(server.node.head == LogHead(revision: 5, hash: hash))
    }
}
