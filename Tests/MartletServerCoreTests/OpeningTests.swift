import MartletModel
internal import MartletProtocol
import SQLiteKit
import SQLiteRecords
import SetTexts
import Testing

@testable import MartletServerCore

@Suite("Opening a data set")
struct OpeningTests {
    @Test("rows written before Martlet reach the devices, parents first")
    func adoption() throws {
        let script = """
            CREATE TABLE players (
                id INTEGER PRIMARY KEY, name TEXT NOT NULL,
                team_id INTEGER NOT NULL REFERENCES teams (id));
            CREATE TABLE teams (id INTEGER PRIMARY KEY, boss_id INTEGER REFERENCES teams (id));
            CREATE TABLE notes (id TEXT PRIMARY KEY, body TEXT);
            """
        let server = try TestServer(script) { connection in
            try connection.execute(script)
            try connection.execute(
                """
                INSERT INTO teams VALUES (1, 4), (4, NULL), (7, 9), (9, 7), (11, 7);
                INSERT INTO players VALUES (5, 'P', 1);
                INSERT INTO notes VALUES ('n', NULL);
                """)
        }
        let answer = try server.answer(#"{"clientId":"d","maxRevision":0,"changeSets":[]}"#)
        #expect(
            answer.changeSets.map(\.content) == [
                "teams create [4, 1] 4@1() 1@1(boss_id=4)",
                "teams create [7, 9, 11] 7@2(boss_id=9) 9@2(boss_id=7) 11@2(boss_id=7)",
                "players create [5] 5@3(name=P team_id=1)",
                "notes create [n] n@4()",
            ])
        let set = try server.send(
            SetText().create("teams", "-1").update("players", "5", #""revision":3,"name":"Q""#))
        #expect(set.content == "teams create [12] 12@5(); players update [5] 5@5(name=Q)")
    }

    @Test("large tables are taken in entries of a thousand")
    func manyRows() throws {
        let script = "CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);"
        let server = try TestServer(script) { connection in
            try connection.execute(script)
            try connection.execute(
                """
                INSERT INTO teams SELECT value, 'T' || value FROM (
                WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n LIMIT 2500)
                SELECT value FROM n)
                """)
        }
        #expect(server.node.head.revision == 3)
        let answer = try server.answer(#"{"maxRevision":0,"changeSets":[]}"#)
        #expect(answer.changeSets.map(\.recordCount) == [1000, 1000, 500])
    }

    @Test("rows with keys no server gives refuse the file")
    func badKeys() throws {
        let script = "CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);"
        #expect(throws: SchemaError.self) {
            _ = try TestServer(script) { connection in
                try connection.execute(script)
                try connection.execute("INSERT INTO teams VALUES (-1, 'A')")
            }
        }
    }

    @Test("everything is there after a restart: revision, ids, devices, identity")
    func restartOfDataSet() throws {
        let server = try TestServer("CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);")
        try server.send(SetText().create("teams", "-1"))
        try server.send(SetText().delete("teams", "1"))
        let head = server.node.head
        try server.restart()
        #expect(server.node.head == head)
        #expect(server.node.identity == TestServer.identity)
        // An id once given is not given again.
        let set = try server.send(SetText().create("teams", "-2"))
        #expect(set["teams"]?.create == [.integer(2)])
        #expect(try server.rows("SELECT count(*) FROM martlet_devices") == "1")
    }

    @Test("a grown script brings types and columns, and the log tells what columns hold")
    func migrationOfScript() throws {
        let server = try TestServer("CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);")
        try server.send(SetText().create("teams", "-1", #""name":"A""#))
        let early = SetText("e", sequence: 7).create("teams", "-2", #""rank":4"#)
        #expect(try server.send(early).fate == "unknownAttribute")
        try server.restart(
            script: """
                CREATE TABLE teams (
                    id INTEGER PRIMARY KEY, name TEXT, rank INTEGER NOT NULL DEFAULT 3,
                    city TEXT);
                CREATE TABLE notes (id TEXT PRIMARY KEY, body TEXT);
                """)
        let answer = try server.answer(#"{"clientId":"d2","maxRevision":1,"changeSets":[]}"#)
        #expect(answer.changeSets.map(\.content) == ["teams update [1] 1@1(rank=3)"])
        // Nobody changed the record: an edit based on what a device had is not stale.
        let edit = try server.send(
            SetText().update("teams", "1", #""revision":1,"city":"Rome""#), from: "d2")
        #expect(edit.fate == "accepted 3")
        #expect(try server.send(SetText().create("notes", "n")).fate == "accepted 4")
        // The set that named the column before gets its chance.
        #expect(try server.send(early).fate == "accepted 5")
        #expect(try server.exchange([early]).changeSets.map(\.fate) == ["accepted 5"])
    }

    @Test("the log from the beginning makes the tables anew, also under a grown script")
    func foldedAfterMigration() throws {
        let server = try TestServer("CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);")
        try server.send(SetText().create("teams", "-1", #""name":"A""#))
        let grown = """
            CREATE TABLE teams (
                id INTEGER PRIMARY KEY, name TEXT, rank INTEGER NOT NULL DEFAULT 3,
                city TEXT DEFAULT 'Rome');
            """
        try server.restart(script: grown)
        try server.send(SetText().create("teams", "-2", #""rank":5,"city":null"#))
        let device = try Connection(path: ":memory:")
        try device.execute(grown)
        let type = try #require(try SchemaReader.read(device).types.first)
        let table = RecordTable(type: type, connection: device)
        for set in try server.answer(#"{"maxRevision":0,"changeSets":[]}"#).changeSets {
            for changes in set.types {
                for entry in changes.entries {
                    if changes.create.contains(entry.id) {
                        try table.insert(entry.id, entry.attributes, absentMeansNull: true)
                    } else {
                        #expect(try table.update(entry.id, entry.attributes))
                    }
                }
            }
        }
        var rows: [String] = []
        try table.forEach { id, row in
            rows.append(([id.description] + row.values.map(\.short)).joined(separator: "|"))
        }
        #expect(rows == ["1|A|3|Rome", "2|null|5|null"])
        #expect(try server.rows("SELECT * FROM teams") == "1|A|3|Rome\n2|-|5|-")
    }

    @Test("a script that takes something away is refused, and the file stays")
    func shrunk() throws {
        let server = try TestServer("CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);")
        #expect(throws: SchemaError.self) {
            try server.restart(script: "CREATE TABLE teams (id INTEGER PRIMARY KEY);")
        }
        try server.restart()
        #expect(try server.send(SetText().create("teams", "-1")).fate == "accepted 1")
    }

    @Test("a file of a newer version is refused")
    func newerFormat() throws {
        let server = try TestServer("CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);")
        try server.execute("UPDATE martlet_meta SET value = 99")
        #expect(throws: StorageFault.self) { try server.restart() }
    }
}
