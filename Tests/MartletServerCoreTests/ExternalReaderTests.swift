import Foundation
import MartletModel
import MartletProtocol
import SQLiteKit
import SQLiteRecords
import SetTexts
import Testing

@testable import MartletEmbedded
@testable import MartletServerCore

@Suite("Readers, while what other programs wrote is not in the log yet")
struct ExternalReaderTests {
    private static let script = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
        CREATE TABLE players (id INTEGER PRIMARY KEY, team INTEGER REFERENCES teams, name TEXT);
        """

    /// A team, a player, and another program that has changed the player so that it refers to a team
    /// of its own.
    private func server() throws -> TestServer {
        let server = try TestServer(Self.script)
        try server.send(SetText().create("teams", "-1", #""name":"A""#))
        try server.send(SetText().create("players", "-1", #""name":"Ada","team":1"#))
        try Connection(path: server.path).execute(
            """
            BEGIN; INSERT INTO teams VALUES (7, 'B'); UPDATE players SET team = 7; COMMIT
            """)
        #expect(try server.store.look().hasExternalWrites)
        return server
    }

    /// What a consistent reading of a reader does, as a server has its writer do it.
    private func caughtUp(_ server: TestServer) -> ConsistentReading {
        { (body) throws(StorageFault) in
            while try !server.node.whenCaughtUp(now: 5, body) {}
        }
    }

    private func reader(_ server: TestServer, consistently: ConsistentReading?) -> LogReader {
        LogReader(
            feed: server.node.feed,
            log: EmbeddedLog(path: server.path, vfs: nil, schema: server.store.schema),
            check: EmbeddedCheck(
                path: server.path, vfs: nil, schema: server.store.schema,
                unsendable: UnsendableRows()),
            consistently: consistently)
    }

    private static let rows = #"{"protocol":1,"maxRevision":0,"rows":true,"changeSets":[]}"#
    /// The state after the other program's transaction, which is revision 3.
    private static let expected =
        "teams update [1, 7] 1@1(name=A) 7@3(name=B); players update [1] 1@3(team=7 name=Ada)"

    @Test("The node takes it in before it answers in rows")
    func node() throws {
        let server = try server()
        let answer = try server.answer(Self.rows)
        #expect(answer.maxRevision == 3)
        #expect(answer.changeSets.map(\.content) == [Self.expected])
        #expect(server.node.takeExternalCount() == 1)
    }

    @Test("A reader beside the node has it taken in, for answers and for the stream")
    func beside() throws {
        let server = try server()
        let reader = reader(server, consistently: caughtUp(server))
        guard case .answer(let prepared) = reader.answer(to: try server.admitted(Self.rows)) else {
            Issue.record("no answer")
            return
        }
        let answer = try SyncCoder.decodeAnswer(prepared.body)
        #expect(answer.maxRevision == 3)
        #expect(answer.changeSets.map(\.content) == [Self.expected])
        try Connection(path: server.path).execute("UPDATE teams SET name = 'C' WHERE id = 7")
        var request = DeltaRequest(principal: .ada, since: 0)
        request.wantsRows = true
        guard case .batch(let batch) = reader.deltas(request) else {
            Issue.record("no batch")
            return
        }
        #expect(batch.nextVersion == 4)
        #expect(try SyncCoder.decodeDeltaBatch(batch.json).deltas.map(\.version) == [1, 3, 4])
    }

    @Test("A comparison sees no row that the log does not have")
    func checkSeesLogOnly() throws {
        let server = try server()
        let check = EmbeddedCheck(
            path: server.path, vfs: nil, schema: server.store.schema,
            unsendable: UnsendableRows())
        check.consistently = caughtUp(server)
        let type = CheckedType(
            name: "players", attributes: [CheckedAttribute(name: "team", kind: "integer")],
            ranges: [CheckedRange(hash: RangeHash(count: 40, sum: 1))])
        let answer = try check.compare(CheckRequest(revision: 2, types: [type]))
        #expect(answer.revision == 3)
        guard case .rows(let rows) = answer.types[0].ranges[0] else {
            Issue.record("\(answer)")
            return
        }
        // It has changed since the device's revision.
        #expect(rows.rows.isEmpty && rows.without == [.integer(1)])
    }

    @Test("A snapshot is of a revision that has it")
    func snapshotOfLoggedRevision() throws {
        let server = try server()
        let path = server.folder.appendingPathComponent("all.sqlite").path
        let cut = try SnapshotMaker(path: server.path, consistently: caughtUp(server)).make { _ in
            path
        }
        #expect(cut.revision == 3)
        #expect(
            try Connection(path: path).text(
                "SELECT group_concat(id || name) FROM (SELECT id, name FROM teams ORDER BY id)")
                == "1A,7B")
        try SnapshotReader(path: path).verify()
    }

    @Test("Where nobody can take it in, a reader says so and reads nothing")
    func alone() throws {
        let server = try server()
        guard
            case .problem(let problem) = reader(server, consistently: nil)
                .answer(to: try server.admitted(Self.rows))
        else {
            Issue.record("an answer")
            return
        }
        #expect(problem.status == 503)
        let path = server.folder.appendingPathComponent("all.sqlite").path
        let fault = try #require(throws: StorageFault.self) {
            try SnapshotMaker(path: server.path).make { _ in path }
        }
        #expect(fault.kind == .busy && fault.description.contains("a server that runs on the file"))
        #expect(!FileManager.default.fileExists(atPath: path))
        // Afterwards both work.
        #expect(!server.node.takeExternalWrites(now: 5))
        guard
            case .answer = reader(server, consistently: nil).answer(
                to: try server.admitted(Self.rows))
        else {
            Issue.record("no answer")
            return
        }
    }

    @Test("Nobody can write at the moment a reader begins")
    func moment() throws {
        let server = try server()
        let other = try Connection(path: server.path)
        try other.execute("PRAGMA busy_timeout = 0")
        var calls = 0
        while try !server.node.whenCaughtUp(
            now: 5,
            { () throws(StorageFault) in
                calls += 1
                let error = #expect(throws: SQLiteError.self) {
                    try other.execute("INSERT INTO teams VALUES (8, 'C')")
                }
                #expect(error?.isBusy == true)
            })
        {}
        #expect(calls == 1)
        try other.execute("INSERT INTO teams VALUES (8, 'C')")
        // What the reader throws leaves the node as it was.
        #expect(throws: StorageFault(.full, "a")) {
            while try !server.node.whenCaughtUp(
                now: 6,
                { () throws(StorageFault) in
                    throw StorageFault(.full, "a")
                })
            {}
        }
        #expect(server.node.head.revision == 4)
        let fate = try server.send(SetText("z").create("teams", "-2", #""name":"D""#)).fate
        #expect(fate == "accepted 5")
    }

    @Test("A set is not judged before all of a large change is in the log")
    func largeExternalChange() throws {
        let server = try TestServer(Self.script)
        let many = 10_100
        let other = try Connection(path: server.path)
        try other.execute(
            """
            WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < \(many))
                INSERT INTO teams SELECT n, 'T' || n FROM n
            """)
        while server.node.takeExternalWrites(now: 5) {}
        let head = server.node.head.revision
        #expect(try server.store.look().hasExternalWrites == false)
        try other.execute("UPDATE teams SET name = name || '+'")
        let stale = SetText("s", sequence: 1)
            .update("teams", "\(many)", #""revision":\#(head),"name":"blind""#)
        let refused = try server.send(stale, from: "d", at: head)
        #expect(refused.fate == "stale")
        #expect(refused["teams"]?.update == [.integer(Int64(many))])
        #expect(
            try server.rows("SELECT name FROM teams WHERE id = \(many)") == "T\(many)+")
    }
}
