import MartletModel
import MartletProtocol
import SQLiteKit
import SetTexts
import Testing

@testable import MartletEmbedded
@testable import MartletServerCore

@Suite("Differences and compaction in a file")
struct EmbeddedDifferenceTests {
    @Test("hold what a new column gave to rows that nobody changed")
    func newColumn() throws {
        let server = try TestServer("CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);")
        try server.send(SetText().create("teams", "-1", #""name":"A""#))
        try server.send(SetText().create("teams", "-2", #""name":"B""#))
        let grown = """
            CREATE TABLE teams (
                id INTEGER PRIMARY KEY, name TEXT, rank INTEGER NOT NULL DEFAULT 3);
            """
        try server.restart(script: grown)
        try server.send(SetText().update("teams", "2", #""revision":2,"name":"C""#))
        #expect(server.node.head.revision == 4)
        let asked = #"{"clientId":"d2","protocol":1,"maxRevision":2,"rows":true,"changeSets":[]}"#
        let expected = "teams update [1, 2] 1@1(name=A rank=3) 2@4(name=C rank=3)"
        #expect(try server.answer(asked).changeSets.map(\.content) == [expected])
        guard
            case .batch(let batch) = LogReader(feed: server.node.feed, store: server.store)
                .deltas(Self.request(since: 2))
        else {
            Issue.record("no batch")
            return
        }
        let deltas = try SyncCoder.decodeDeltaBatch(batch.json).deltas
        #expect(deltas.map(\.version) == [3, 4])
        #expect(deltas.map(\.recordRevision) == [1, nil])
        #expect(deltas.map(\.isNew) == [true, true])
        // A file of the version before knew no such positions.
        try ExternalTriggers.remove(from: Connection(path: server.path))
        try server.execute(
            """
            DROP TABLE martlet_outside; ALTER TABLE martlet_dataset DROP COLUMN applying;
            DROP INDEX martlet_records_revision; DROP TABLE martlet_announced;
            DROP TABLE martlet_type_views; DROP TABLE martlet_members; DROP TABLE martlet_views;
            DROP TABLE martlet_given; DROP TABLE martlet_purges;
            DROP TABLE martlet_columns;
            UPDATE martlet_meta SET value = 1 WHERE key = 'format'
            """)
        try server.restart(script: grown)
        #expect(try server.answer(asked).changeSets.map(\.content) == [expected])
        #expect(try server.rows("SELECT value FROM martlet_meta WHERE key = 'format'") == "6")
    }

    @Test("hold a row once, if several new columns gave it a value")
    func newColumns() throws {
        let server = try TestServer("CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);")
        try server.send(SetText().create("teams", "-1", #""name":"A""#))
        try server.send(SetText().create("teams", "-2", #""name":"B""#))
        var columns = "id INTEGER PRIMARY KEY, name TEXT"
        for (column, base) in [("rank", 2), ("size", 4), ("age", 6)] {
            columns += ", \(column) INTEGER DEFAULT 3"
            try server.restart(script: "CREATE TABLE teams (\(columns));")
            try server.send(
                SetText().update("teams", "2", #""revision":\#(base),"name":"\#(column)""#))
        }
        #expect(server.node.head.revision == 8)
        let asked = #"{"clientId":"d2","protocol":1,"maxRevision":2,"rows":true,"changeSets":[]}"#
        #expect(
            try server.answer(asked).changeSets.map(\.content) == [
                "teams update [1, 2] 1@1(name=A rank=3 size=3 age=3) 2@8(name=age rank=3 size=3 age=3)"
            ])
        guard
            case .batch(let batch) = LogReader(feed: server.node.feed, store: server.store)
                .deltas(Self.request(since: 2))
        else {
            Issue.record("no batch")
            return
        }
        let deltas = try SyncCoder.decodeDeltaBatch(batch.json).deltas
        #expect(deltas.map(\.recordRevision) == [1, nil])
    }

    private static func request(since: Revision) -> DeltaRequest {
        var request = DeltaRequest(principal: .ada, since: since)
        request.wantsRows = true
        return request
    }

    @Test("the emptying of acknowledged entries finds them by index alone")
    func planOfEmptying() throws {
        let server = try TestServer("CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);")
        let plan = try server.rows(
            """
            EXPLAIN QUERY PLAN UPDATE martlet_log SET body = x'', temporaries = NULL \
            WHERE device = 1 AND device <> 0 AND sequence > 2 AND sequence <= 3 \
            AND sequence IS NOT NULL AND revision <= 4
            """)
        #expect(plan.contains("martlet_log_sequence (device=? AND sequence>? AND sequence<?)"))
    }
}
