import MartletModel
import MartletProtocol
import SQLiteRecords
import SetTexts
import Testing

@testable import MartletServerCore

@Suite("Comparing a device's state")
struct CheckTests {
    private static let script = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT, wins INTEGER, share REAL);
        CREATE TABLE notes (id TEXT PRIMARY KEY COLLATE NOCASE, text TEXT);
        """
    private static let attributes = [
        CheckedAttribute(name: "name", kind: "text"),
        CheckedAttribute(name: "wins", kind: "integer"),
        CheckedAttribute(name: "share", kind: "real"),
    ]

    private func server(_ kind: StorageKind, teams: Int) async throws -> TestDataSet {
        let server = try await TestDataSet(kind, Self.script)
        for start in stride(from: 1, through: teams, by: 10) {
            let ids = (start..<min(start + 10, teams + 1)).map { -$0 }
            let attributes = ids.map { #""\#($0)":{"name":"t\#(-$0)","wins":\#(-$0)}"# }
            let fate = try server.send(
                """
                {"types":["teams"],"teams":{"create":[\(ids.map(String.init).joined(separator: ","))],\
                "update":[],"delete":[],"attributes":{\(attributes.joined(separator: ","))}}}
                """)
            #expect(fate.fate.hasPrefix("accepted"))
        }
        return server
    }

    private func ask(
        _ server: TestDataSet, _ types: [CheckedType], at revision: Revision? = nil
    ) throws -> CheckAnswer {
        var request = SyncRequest(maxRevision: revision ?? server.node.head.revision)
        request.check = CheckRequest(revision: request.maxRevision, types: types)
        let admitted = AdmittedRequest(
            principal: .ada, request: request, source: [])
        guard case .needsLog = server.node.feed.answer(to: admitted) else {
            Issue.record("rows were compared without a reader")
            throw UnexpectedAnswer()
        }
        let reader = server.reader()
        guard case .answer(let prepared) = reader.answer(to: admitted) else {
            throw UnexpectedAnswer()
        }
        return try #require(try SyncCoder.decodeAnswer(prepared.body).check)
    }

    /// What a range of teams hashes to when computed from the rows as the wire carries them.
    private func hash(_ server: TestDataSet, _ ids: ClosedRange<Int64>) throws -> RangeHash {
        let type = server.node.schema.types[0]
        // In what order the records of one revision come is the storage's own affair.
        server.isCompared = false
        defer { server.isCompared = true }
        let answer = try server.answer(
            #"{"maxRevision":0,"protocol":1,"rows":true,"changeSets":[]}"#)
        var hasher = RowHasher(type: type)
        var hash = RangeHash()
        for entry in answer.changeSets[0]["teams"]?.entries ?? [] {
            guard case .integer(let id) = entry.id, ids.contains(id) else { continue }
            let names = type.attributes.map(\.name)
            let row = Attributes(
                names: names, values: names.map { entry.attributes[$0] ?? .null })
            hash.add(row: hasher.hash(entry.id, row))
            hash.add(mark: hasher.mark(entry.id, entry.revision ?? 0))
        }
        return hash
    }

    private func teams(_ ranges: [CheckedRange]) -> CheckedType {
        CheckedType(name: "teams", attributes: Self.attributes, ranges: ranges)
    }

    @Test(
        "ranges that are the same are equal; one that differs says what the server has",
        arguments: StorageKind.all)
    func compared(kind: StorageKind) async throws {
        let server = try await server(kind, teams: 60)
        let whole = try hash(server, 1...60)
        #expect(
            try ask(server, [teams([CheckedRange(hash: whole)])]).types[0].ranges == [.equal])
        let other = RangeHash(count: 60, sum: whole.sum &+ 1)
        #expect(
            try ask(server, [teams([CheckedRange(hash: other)])]).types[0].ranges
                == [.hash(whole, without: [])])
        let parts = [
            CheckedRange(below: .integer(21), hash: try hash(server, 1...20)),
            CheckedRange(
                from: .integer(21), below: .integer(41), hash: try hash(server, 22...40)),
            CheckedRange(from: .integer(41), hash: try hash(server, 41...60)),
        ]
        #expect(
            try ask(server, [teams(parts)]).types[0].ranges
                == [.equal, .hash(try hash(server, 21...40), without: []), .equal])
    }

    @Test(
        "a small range that differs comes as its rows, whole and with their revisions",
        arguments: StorageKind.all)
    func small(kind: StorageKind) async throws {
        let server = try await server(kind, teams: 40)
        let range = CheckedRange(from: .integer(11), below: .integer(14), hash: RangeHash())
        guard case .rows(let found) = try ask(server, [teams([range])]).types[0].ranges[0] else {
            throw UnexpectedAnswer()
        }
        #expect(found.rows.map(\.id) == [.integer(11), .integer(12), .integer(13)])
        #expect(found.rows.map(\.revision) == [2, 2, 2])
        #expect(found.rows[0].attributes["name"] == "t11")
        #expect(found.rows[0].attributes["share"] == .null)
        #expect(found.next == nil && found.without.isEmpty)
    }

    @Test("a device that has nothing of a long range gets it in parts", arguments: StorageKind.all)
    func partsOfCheck(kind: StorageKind) async throws {
        let server = try await server(kind, teams: Limits.checkRows + 100)
        var from: RecordID?
        var ids: [RecordID] = []
        repeat {
            let range = CheckedRange(from: from, hash: RangeHash())
            guard case .rows(let found) = try ask(server, [teams([range])]).types[0].ranges[0]
            else { throw UnexpectedAnswer() }
            ids += found.rows.map(\.id)
            from = found.next
        } while from != nil
        #expect(ids == (1...Int64(Limits.checkRows + 100)).map { .integer($0) })
    }

    @Test(
        "what changed since the device's revision is left out and named, deletes too",
        arguments: StorageKind.all)
    func changed(kind: StorageKind) async throws {
        let server = try await server(kind, teams: 60)
        let revision = server.node.head.revision
        let before = try hash(server, 1...60) - hash(server, 5...5) - hash(server, 9...9)
        let sent = try server.send(
            """
            {"types":["teams"],"teams":{"create":[-61],"update":[5],"delete":[9],
            "attributes":{"-61":{"name":"new"},"5":{"revision":1,"name":"other"},
            "9":{"revision":1}}}}
            """)
        #expect(sent.revision != nil, "\(sent.fate) \(sent.message ?? "")")
        let whole = CheckedRange(hash: RangeHash(count: 60, sum: 1))
        let answer = try ask(server, [teams([whole])], at: revision)
        #expect(answer.revision == revision + 1)
        #expect(
            answer.types[0].ranges
                == [.hash(before, without: [.integer(5), .integer(9), .integer(61)])])
    }

    @Test("too much that changed since is not compared", arguments: StorageKind.all)
    func behindTooMuchToCompare(kind: StorageKind) async throws {
        let server = try await server(kind, teams: Limits.checkLeftOut + 20)
        let range = CheckedRange(hash: RangeHash())
        #expect(try ask(server, [teams([range])], at: 1).isBehind)
        #expect(try !ask(server, [teams([range])], at: 2).isBehind)
    }

    @Test(
        "types and attributes that are unknown, or of another kind, are named",
        arguments: StorageKind.all)
    func unknownTypesInCheck(kind: StorageKind) async throws {
        let server = try await server(kind, teams: 3)
        var teams = teams([CheckedRange(hash: RangeHash())])
        teams.attributes += [
            CheckedAttribute(name: "colour", kind: "text"),
            CheckedAttribute(name: "id", kind: "integer"),
        ]
        teams.attributes[1].kind = "text"
        let range = CheckedRange(from: .integer(1), hash: RangeHash())
        let answer = try ask(
            server,
            [
                teams, CheckedType(name: "players", attributes: []),
                CheckedType(name: "notes", attributes: [], ranges: [range]),
                CheckedType(name: "sqlite_schema", attributes: []),
            ])
        #expect(answer.types[0].unknownAttributes == ["wins", "colour", "id"])
        #expect(answer.types[0].ranges.isEmpty)
        #expect(answer.types.map(\.isUnknown) == [false, true, true, true])
    }

    @Test(
        "text keys are ordered by their bytes, whatever collation the column has",
        arguments: StorageKind.all)
    func textsOrderedByBytes(kind: StorageKind) async throws {
        let server = try await server(kind, teams: 0)
        let ids = ["A", "a1", "B", "b1", "é"]
        for id in ids {
            try server.send(
                #"""
                {"types":["notes"],"notes":{"create":["\#(id)"],"update":[],"delete":[],
                "attributes":{"\#(id)":{"text":"x"}}}}
                """#)
        }
        let range = CheckedRange(from: .text("B"), below: .text("b"), hash: RangeHash())
        let answer = try ask(
            server,
            [
                CheckedType(
                    name: "notes", attributes: [CheckedAttribute(name: "text", kind: "text")],
                    ranges: [range])
            ])
        guard case .rows(let found) = answer.types[0].ranges[0] else {
            throw UnexpectedAnswer()
        }
        #expect(found.rows.map(\.id) == [.text("B"), .text("a1")])
    }

    @Test(
        "a check about a newer revision than the request's is refused", arguments: StorageKind.all)
    func aheadOfRequest(kind: StorageKind) async throws {
        let server = try await server(kind, teams: 3)
        let problem = try server.problem(
            #"{"maxRevision":1,"check":{"revision":2,"types":[]},"changeSets":[]}"#)
        #expect(problem?.kind == "invalidRequest")
    }

    @Test("a row that cannot be sent is left out", arguments: StorageKind.all)
    func unsendableRowInCheck(kind: StorageKind) async throws {
        let server = try await server(kind, teams: 3)
        try server.execute(
            "UPDATE teams SET share = \(kind.isPostgres ? "'Infinity'" : "9e999") WHERE id = 2")
        let answer = try ask(server, [teams([CheckedRange(hash: RangeHash())])])
        guard case .rows(let found) = answer.types[0].ranges[0] else {
            throw UnexpectedAnswer()
        }
        #expect(found.rows.map(\.id) == [.integer(1), .integer(3)])
        #expect(found.without == [.integer(2)])
    }
}
