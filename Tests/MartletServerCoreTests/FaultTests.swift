import MartletModel
import MartletProtocol
import MartletRules
import SQLiteFaults
import SQLiteKit
import SetTexts
import Testing

@testable import MartletEmbedded
@testable import MartletServerCore

/// A server on a disk that fails, and devices that send again until they are answered.
private struct FaultyRun {
    static let schema = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
        CREATE TABLE players (
            id INTEGER PRIMARY KEY, name TEXT,
            team_id INTEGER REFERENCES teams (id) ON DELETE CASCADE);
        """

    /// Batches of requests: each a device, its revision, and its sets.
    static let batches: [[(client: String, sets: [SetText])]] = [
        [
            (
                "d1",
                [
                    SetText("a1", sequence: 1).create("teams", "-1", #""name":"A""#)
                        .create("players", "-1", #""name":"P","team_id":-1"#),
                    SetText("a2", sequence: 2).create("teams", "-2", #""name":"B""#),
                ]
            ),
            ("d2", [SetText("b1", sequence: 1).create("teams", "-1", #""name":"A""#)]),
        ],
        [
            (
                "d2",
                [
                    SetText("b2", sequence: 2).update("teams", "2", #""revision":0,"name":"C""#),
                    SetText("b3", sequence: 3).create("players", "-5", #""team_id":2"#),
                ]
            )
        ],
        [("d1", [SetText("a3", sequence: 3, seen: 0).delete("teams", "-1")])],
    ]

    let server: FaultyServer
    var operations = 0
    /// What each set was answered, by identifier.
    var fates: [String: String] = [:]

    init(name: String, seed: UInt64) {
        server = FaultyServer(schema: Self.schema, name: name, seed: seed)
    }

    /// Runs everything, once more after every fault; gives the final state as text.
    mutating func run() throws -> String {
        for batch in Self.batches { try server.insist { try send(batch, to: $0) } }
        operations = server.disk.operationCount
        return try state()
    }

    private mutating func send(
        _ batch: [(client: String, sets: [SetText])], to node: DataSetNode
    ) throws -> Bool {
        let requests = try batch.map { client, sets in
            let json = """
                {"clientId":"\(client)","maxRevision":0,\
                "changeSets":[\(sets.map(\.description).joined(separator: ","))]}
                """
            return AdmittedRequest(
                principal: .ada, request: try SyncCoder.decodeRequest(Array(json.utf8)),
                source: Array(json.utf8))
        }
        var isDone = true
        for result in node.process(requests, now: 7) {
            switch result {
            case .failure(let problem):
                #expect(problem.status == 503)
                isDone = false
            case .success(let answer):
                for set in try SyncCoder.decodeAnswer(answer.body).changeSets {
                    guard let identifier = set.identifier else { continue }
                    let known = fates.updateValue(set.fate, forKey: identifier)
                    #expect(known == nil || known == set.fate, "a verdict changed")
                }
            }
        }
        return isDone
    }

    private func state() throws -> String {
        let connection = try server.connection()
        var lines: [String] = []
        for table in ["teams", "players", "martlet_records"] {
            let statement = try connection.prepare("SELECT * FROM \(table)")
            while try statement.step() {
                lines.append(
                    table + (0..<statement.columnCount).map { " " + statement.text($0) }.joined())
            }
        }
        let log = EmbeddedLog(path: FaultyServer.path, vfs: server.disk.vfsName)
        var hash = LineageHash(origin: "abc")
        for entry in try log.entries(from: 1, through: 100, maxBytes: .max) {
            hash = hash.appending(entry.body, identifier: entry.identifier)
            #expect(entry.hash == hash)
            lines.append("\(entry.revision) " + String(decoding: entry.body, as: UTF8.self))
        }
        #expect(server.node?.head.hash == hash)
        return lines.joined(separator: "\n")
    }
}

@Suite("A failing disk", .serialized)
struct FaultTests {
    @Test(
        "whatever operation fails, all is done once, and the verdicts stand",
        arguments: [FaultDisk.Failure.ioError, .full, .crash], [false, true])
    func everyOperationOfBatch(failure: FaultDisk.Failure, lasting: Bool) throws {
        var reference = FaultyRun(name: "reference-\(failure)-\(lasting)", seed: 1)
        let expected = try reference.run()
        #expect(
            reference.fates == [
                "a1": "accepted 1", "a2": "accepted 2", "b1": "constraint", "b2": "stale",
                "b3": "accepted 3", "a3": "accepted 4",
            ])
        let operations = reference.operations
        #expect(operations > 40)
        var faults = 0
        for operation in 1...operations {
            var run = FaultyRun(
                name: "\(failure)-\(lasting)-\(operation)", seed: UInt64(operation))
            run.server.disk.failAfter(operations: operation, kind: failure, lasting: lasting)
            #expect(try run.run() == expected, "operation \(operation)")
            #expect(run.fates == reference.fates, "operation \(operation)")
            faults += run.server.faults
        }
        #expect(faults > operations / 3)
    }

    @Test("a disk that stays full puts sets off and answers who reads, until there is room")
    func fullDiskPutsOff() throws {
        let server = FaultyServer(schema: FaultyRun.schema, name: "full", seed: 5)
        func request(_ identifier: String) throws -> AdmittedRequest {
            let id = identifier == "a" ? "-1" : "-2"
            let set = SetText(identifier).create("teams", id, #""name":"\#(identifier)""#)
            let json = Array(
                #"{"clientId":"d1","maxRevision":0,"changeSets":[\#(set)]}"#.utf8)
            return AdmittedRequest(
                principal: .ada, request: try SyncCoder.decodeRequest(json), source: json
            )
        }
        func fate(_ result: Result<PreparedAnswer, Problem>) throws -> String? {
            try SyncCoder.decodeAnswer(try result.get().body).changeSets.last?.fate
        }
        try server.insist { try fate($0.process([request("a")], now: 1)[0]) == "accepted 1" }
        let node = try #require(server.node)
        // As a server has: the one that looks for other programs' writes.
        let watch = try server.connection()
        defer { withExtendedLifetime(watch) {} }
        server.disk.failAfter(operations: 1, kind: .full, lasting: true)
        for _ in 1...3 {
            guard case .failure(let problem) = node.process([try request("b")], now: 2)[0] else {
                Issue.record("a set was accepted without room for it")
                continue
            }
            #expect(problem.status == 503 && problem.kind == "storage")
            #expect(problem.retryAfter == 30)
            #expect(problem.detail.contains("no room left on its disk"))
            #expect(node.takeFault()?.kind == .full)
            let pull = Array(#"{"maxRevision":0,"changeSets":[]}"#.utf8)
            guard
                case .answer(let answer) = node.feed.answer(
                    to: AdmittedRequest(
                        principal: .ada, request: try SyncCoder.decodeRequest(pull),
                        source: pull))
            else {
                Issue.record("who reads was not answered")
                continue
            }
            #expect(try SyncCoder.decodeAnswer(answer.body).changeSets.map(\.revision) == [1])
            // Only the storage knows whether these two are devices.
            for client in ["d1", "d9"] {
                let json = Array(
                    #"{"clientId":"\#(client)","maxRevision":0,"changeSets":[]}"#.utf8)
                let pull = AdmittedRequest(
                    principal: .ada, request: try SyncCoder.decodeRequest(json),
                    source: json)
                let answer = try node.process([pull, try request("b")], now: 2)[0].get()
                #expect(try SyncCoder.decodeAnswer(answer.body).changeSets.map(\.revision) == [1])
                #expect(node.takeFault()?.kind == .full)
                let other = AdmittedRequest(
                    principal: Principal(name: "tablet", user: "eve"), request: pull.request,
                    source: json)
                if client == "d1", case .success = node.process([other], now: 2)[0] {
                    Issue.record("a device was answered with another user's token")
                }
            }
        }
        server.disk.heal()
        #expect(try fate(node.process([try request("b")], now: 3)[0]) == "accepted 2")
        #expect(try fate(node.process([try request("b")], now: 4)[0]) == "accepted 2")
    }

    private static func pull(
        _ client: String, _ person: Principal, _ more: String = "", sets: [SetText] = []
    ) throws -> AdmittedRequest {
        let list = sets.map(\.description).joined(separator: ",")
        let json = Array(
            #"{"clientId":"\#(client)","maxRevision":0,\#(more)"changeSets":[\#(list)]}"#.utf8)
        return AdmittedRequest(
            principal: person, request: try SyncCoder.decodeRequest(json), source: json)
    }

    @Test(
        "on a full disk nobody gets a part of the records whom the server cannot note, and all others read"
    )
    func fullDiskAndViews() throws {
        let server = FaultyServer(schema: FaultyRun.schema, name: "views", seed: 6)
        let ann = Principal(name: "a", user: "ann")
        let olga = Principal(name: "o", user: "olga", roles: ["office"])
        func names(_ result: Result<PreparedAnswer, Problem>) throws -> [Value] {
            let sets = try SyncCoder.decodeAnswer(try result.get().body).changeSets
            return sets.flatMap(\.types).flatMap(\.entries).compactMap { $0.attributes["name"] }
        }
        let first = SetText("a", sequence: 1).create("teams", "-1", #""name":"A""#)
            .create("teams", "-2", #""name":"B""#)
        try server.insist { node in
            node.policies = try RulesProgram(
                """
                CREATE POLICY part ON teams USING (name = 'A');
                CREATE POLICY office ON teams TO office USING (true);
                CREATE POLICY office ON players TO office USING (true);
                """, schema: node.schema)
            return try node.process([Self.pull("olga1", olga, sets: [first])], now: 1)[0].get()
                .body.isEmpty == false
        }
        let node = try #require(server.node)
        #expect(try names(node.process([Self.pull("ann1", ann)], now: 1)[0]) == ["A"])
        let watch = try server.connection()
        defer { withExtendedLifetime(watch) {} }
        server.disk.failAfter(operations: 1, kind: .full, lasting: true)
        let second = SetText("b", sequence: 2).create("teams", "-3", #""name":"C""#)
        func check(_ results: [Result<PreparedAnswer, Problem>]) throws {
            #expect(try names(results[0]) == ["A"])
            #expect(try names(results[1]) == ["A"])
            #expect(try names(results[2]) == ["A", "B"])
            #expect(try names(results[3]) == ["A", "B"])
            for result in results[4...] {
                guard case .failure(let problem) = result else {
                    Issue.record("a part was given to a device that is not noted")
                    continue
                }
                #expect(problem.kind == "storage" && problem.retryAfter == 30)
                #expect(problem.detail.contains("no room left on its disk"))
            }
        }
        let requests = [
            try Self.pull("ann1", ann), try Self.pull("ann1", ann, #""acknowledged":1,"#),
            try Self.pull("olga1", olga), try Self.pull("olga2", olga),
            try Self.pull("ann2", ann), try Self.pull("bob1", Principal(name: "b", user: "bob")),
            try Self.pull("olga1", olga, sets: [second]),
        ]
        for _ in 1...2 {
            try check(node.process(requests, now: 2))
            try check(requests.map { node.process([$0], now: 2)[0] })
        }
        server.disk.heal()
        #expect(try names(node.process([Self.pull("ann2", ann)], now: 3)[0]) == ["A"])
    }
}
