import Foundation
import MartletModel
import SQLiteKit
import SQLiteRecords
import SetTexts
import Testing

@testable import MartletEmbedded
@testable import MartletServerCore

@Suite("Making snapshots")
struct SnapshotMakerTests {
    private static let script = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
        CREATE TABLE players (
            id TEXT PRIMARY KEY, team INTEGER REFERENCES teams (id) ON DELETE CASCADE,
            height REAL, photo BLOB, tall AS (height > 1.8));
        CREATE TABLE events (
            id INTEGER PRIMARY KEY AUTOINCREMENT, year INTEGER, title TEXT CHECK (title <> ''));
        CREATE INDEX events_year ON events (year);
        CREATE VIEW recent AS SELECT * FROM events WHERE year > 2024;
        CREATE TRIGGER shout AFTER INSERT ON events BEGIN SELECT upper(NEW.title); END;
        """

    /// A server with 40 teams, 100 players and 60 events, some of each deleted.
    private func server() throws -> TestServer {
        let server = try TestServer(Self.script)
        for number in 1...40 {
            let text = """
                {"maxRevision":0,"changeSets":[{"types":["teams","players","events"],
                "teams":{"create":[-1],"update":[],"delete":[],"attributes":{
                "-1":{"name":"Team \(number)"}}},
                "players":{"create":["p\(number)a","p\(number)b"],"update":[],"delete":[],
                "attributes":{"p\(number)a":{"team":-1,"height":1.7,"photo":"AP8="},
                "p\(number)b":{"team":-1,"height":1.9}}},
                "events":{"create":[-1],"update":[],"delete":[],"attributes":{
                "-1":{"year":\(1_990 + number),"title":"Event \(number)"}}}}]}
                """
            _ = try server.raw(text)
        }
        for number in [3, 17] {
            _ = try server.raw(
                """
                {"maxRevision":\(server.node.head.revision),"changeSets":[{"types":["events"],
                "events":{"create":[],"update":[],"delete":[\(number)],
                "attributes":{"\(number)":{"revision":\(number)}}}}]}
                """)
        }
        return server
    }

    private func make(
        _ server: TestServer, _ plan: SeedingPlan = .whole
    ) throws -> SnapshotMaker.Cut {
        try SnapshotMaker(store: server.store, plan: plan).make {
            server.folder.appendingPathComponent("\($0).sqlite").path
        }
    }

    private func rows(_ path: String, _ sql: String) throws -> [String] {
        let connection = try Connection(path: path)
        let statement = try connection.statement(sql)
        return try statement.rows { (row) throws(SQLiteError) in
            (0..<row.columnCount).map { row.isNull($0) ? "∅" : row.text($0) }
                .joined(separator: "|")
        }
    }

    private static let tables = ["teams", "players", "events"]

    @Test("has every row, every record's revision, and neither indexes, views, triggers nor log")
    func wholeSnapshot() throws {
        let server = try server()
        let cut = try make(server)
        #expect(cut.revision == server.node.head.revision)
        #expect(cut.lineage == server.node.head.hash.text)
        #expect(cut.dataSet == TestServer.identity)
        let part = try #require(cut.parts.first)
        #expect(cut.parts.count == 1 && part.name == "all")
        for table in Self.tables {
            let sql = "SELECT * FROM \(table) ORDER BY 1"
            #expect(try rows(part.path, sql) == rows(server.path, sql))
        }
        let revisions = "SELECT type, id, revision FROM martlet_records"
        #expect(
            try rows(part.path, revisions + " ORDER BY 1, 2")
                == rows(server.path, revisions + " WHERE NOT deleted ORDER BY 1, 2"))
        let objects = try rows(
            part.path, "SELECT name FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
        #expect(
            objects == [
                "events", "martlet_records", "martlet_snapshot", "martlet_types", "players",
                "sqlite_sequence", "teams",
            ])
        let reader = try SnapshotReader(path: part.path)
        #expect(reader.schema.fingerprint == server.node.schema.fingerprint)
        #expect(reader.description.records == 40 + 80 + 38)
    }

    @Test("is as small as VACUUM INTO makes the same tables")
    func compact() throws {
        let server = try server()
        let path = try #require(try make(server).parts.first).path
        let connection = try Connection(path: path)
        try connection.execute("VACUUM INTO '\(server.folder.path)/vacuumed.sqlite'")
        let vacuumed = try Connection(path: server.folder.path + "/vacuumed.sqlite")
        let pages = try connection.integer("PRAGMA page_count")
        #expect(try pages == vacuumed.integer("PRAGMA page_count"))
        #expect(try connection.integer("PRAGMA freelist_count") == 0)
    }

    @Test("parts hold every record once, in the first class that names it")
    func partsHoldRecordsOnce() throws {
        let server = try server()
        let plan = SeedingPlan(classes: [
            .init(name: "first", types: ["teams": .all, "events": .matching("year >= 2020")]),
            .init(
                name: "second",
                types: ["events": .matching("year >= 2010 OR title IS NULL"), "teams": .all]),
        ])
        let cut = try make(server, plan)
        #expect(cut.parts.map(\.name) == ["first", "second", "rest"])
        for table in Self.tables {
            let key = "SELECT * FROM \(table)"
            let all = try cut.parts.flatMap { try rows($0.path, key) }
            #expect(try all.sorted() == rows(server.path, key).sorted())
        }
        #expect(
            try rows(cut.parts[0].path, "SELECT count(*), min(year) FROM events") == ["11|2020"])
        #expect(
            try rows(cut.parts[1].path, "SELECT count(*), max(year) FROM events") == ["10|2019"])
        #expect(try rows(cut.parts[1].path, "SELECT count(*) FROM teams") == ["0"])
        #expect(try rows(cut.parts[2].path, "SELECT count(*) FROM players") == ["80"])
        for part in cut.parts {
            let description = try SnapshotReader(path: part.path).description
            #expect(description.parts == ["first", "second", "rest"])
            #expect(description.revision == cut.revision)
        }
    }

    @Test("a file that an older version wrote needs nobody to take in what it did not note")
    func older() throws {
        let server = try server()
        try ExternalTriggers.remove(from: Connection(path: server.path))
        try server.execute(
            """
            DROP TABLE martlet_outside; DROP TABLE martlet_columns; INSERT INTO teams VALUES (900, 'Foreign')
            """)
        let part = try #require(try make(server).parts.first)
        #expect(try rows(part.path, "SELECT count(*) FROM teams") == ["40"])
    }

    @Test("the writer goes on while a snapshot is made, which stays at its revision")
    func besideTheWriter() throws {
        let server = try server()
        var isFirst = true
        let cut = try SnapshotMaker(store: server.store).make {
            if isFirst {
                isFirst = false
                _ = try? server.raw(
                    """
                    {"maxRevision":42,"changeSets":[{"types":["teams"],"teams":{"create":[-1],
                    "update":[],"delete":[],"attributes":{"-1":{"name":"Late"}}}}]}
                    """)
            }
            return server.folder.appendingPathComponent($0).path
        }
        #expect(cut.revision == 43 && server.node.head.revision == 43)
    }

    @Test("refuses rules that are not expressions over the type's columns")
    func rules() throws {
        let connection = try Connection(path: ":memory:")
        try connection.execute("CREATE TABLE events (id INTEGER PRIMARY KEY, year INTEGER)")
        func refusal(_ type: String, _ rule: String) -> String? {
            do {
                try SeedingPlan(classes: [.init(name: "a", types: [type: .matching(rule)])])
                    .check(on: connection)
                return nil
            } catch {
                return (error as? SchemaError)?.message
            }
        }
        #expect(refusal("events", "year > 2024 AND id < 7") == nil)
        #expect(refusal("event", "1")?.contains("“event”") == true)
        #expect(refusal("events", "yaer > 2024")?.contains("yaer") == true)
        #expect(refusal("events", "1); DROP TABLE events; --") != nil)
    }
}
