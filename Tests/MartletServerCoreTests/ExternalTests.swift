import Foundation
import MartletModel
import MartletProtocol
import SQLiteKit
import SQLiteRecords
import SetTexts
import Testing

@testable import MartletEmbedded
@testable import MartletServerCore

@Suite("What other programs write to the server's file")
struct ExternalTests {
    private static let script = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL, code TEXT UNIQUE);
        CREATE TABLE players (
            id INTEGER PRIMARY KEY, team_id INTEGER REFERENCES teams ON DELETE CASCADE,
            name TEXT, score REAL);
        """

    /// As another program opens the file: with SQLite's own settings.
    private func program(_ server: TestServer) throws -> Connection {
        try Connection(path: server.path)
    }

    /// The rows as a device has them that has taken all entries of the log.
    private func replica(_ server: TestServer) throws -> [String: [RecordID: Attributes]] {
        let log = EmbeddedLog(path: server.path, vfs: nil)
        var rows: [String: [RecordID: Attributes]] = [:]
        var reached: Revision = 0
        while reached < server.node.head.revision {
            let entries = try log.entries(
                from: reached + 1, through: server.node.head.revision, maxBytes: 1 << 20)
            for entry in entries {
                reached = entry.revision
                for changes in try SyncCoder.decodeChangeSet(entry.body).types {
                    for record in changes.entries {
                        let isNew = changes.create.contains(record.id)
                        #expect((rows[changes.name]?[record.id] == nil) == isNew)
                        var row = rows[changes.name]?[record.id] ?? Attributes()
                        for (name, value) in zip(
                            record.attributes.names, record.attributes.values)
                        {
                            row[name] = value
                        }
                        rows[changes.name, default: [:]][record.id] = row
                    }
                    for id in changes.delete {
                        #expect(rows[changes.name]?.removeValue(forKey: id) != nil)
                    }
                }
            }
        }
        return rows
    }

    private func names(_ server: TestServer, _ type: String) throws -> [Int64: String] {
        var names: [Int64: String] = [:]
        for (id, row) in try replica(server)[type] ?? [:] {
            guard case .integer(let number) = id, case .text(let name)? = row["name"] else {
                continue
            }
            names[number] = name
        }
        return names
    }

    @Test("Is found by a look, and taken as one set")
    func found() throws {
        let server = try TestServer(Self.script)
        let other = try program(server)
        #expect(try !server.store.look().hasExternalWrites)
        try other.execute(
            """
            INSERT INTO teams (id, name) VALUES (1, 'A'), (2, 'B'), (9, 'C');
            INSERT INTO players (id, team_id, name) VALUES (4, 2, 'Ada');
            UPDATE teams SET name = 'D' WHERE id = 1;
            DELETE FROM teams WHERE id = 9
            """)
        #expect(try server.store.look().hasExternalWrites)
        #expect(!server.node.takeExternalWrites(now: 5))
        #expect(try !server.store.look().hasExternalWrites)
        #expect(server.node.head.revision == 1)
        #expect(try names(server, "teams") == [1: "D", 2: "B"])
        #expect(try names(server, "players") == [4: "Ada"])
        try other.execute("UPDATE players SET score = 1.5; UPDATE teams SET id = 7 WHERE id = 1")
        #expect(!server.node.takeExternalWrites(now: 6))
        #expect(try names(server, "teams") == [7: "D", 2: "B"])
        // Nothing new makes no entry, and own sets are not noted.
        #expect(!server.node.takeExternalWrites(now: 7))
        #expect(server.node.head.revision == 2)
        let answer = try server.answer(
            """
            {"clientId":"a","maxRevision":2,"changeSets":[\
            \(SetText("s", sequence: 1).create("teams", "-1", #""name":"E""#))]}
            """)
        // Ids go on above those of the other program.
        #expect(answer.changeSets[0].types[0].create == [.integer(10)])
        #expect(try !server.store.look().hasExternalWrites)
    }

    @Test("A device's stale edit is refused with the truth, and the device gets what it missed")
    func staleAgainstProgramInFile() throws {
        let server = try TestServer(Self.script)
        let other = try program(server)
        try other.execute("INSERT INTO teams (id, name) VALUES (1, 'A'), (2, 'B')")
        #expect(!server.node.takeExternalWrites(now: 5))
        // Not taken before the device's set arrives.
        try other.execute("UPDATE teams SET name = 'C' WHERE id = 1")
        let edit = SetText("s", sequence: 1).update("teams", "1", #""revision":1,"name":"X""#)
        let fresh = SetText("t", sequence: 2).update("teams", "2", #""revision":1,"name":"Y""#)
        let answer = try server.answer(
            #"{"clientId":"a","maxRevision":1,"changeSets":[\#(edit),\#(fresh)]}"#)
        #expect(answer.changeSets.map(\.revision) == [2, 3, nil])
        let refused = try #require(answer.changeSets.last)
        #expect(refused.reason == .stale)
        #expect(refused.types[0].entries[0].attributes["name"] == .text("C"))
        #expect(refused.types[0].entries[0].revision == 2)
        #expect(try names(server, "teams") == [1: "C", 2: "Y"])
    }

    @Test("Written while the server is down, and rolled back")
    func down() throws {
        let server = try TestServer(Self.script)
        let other = try program(server)
        try other.execute("BEGIN; INSERT INTO teams (id, name) VALUES (1, 'A'); ROLLBACK")
        try other.execute("INSERT INTO teams (id, name) VALUES (2, 'B')")
        try server.restart()
        #expect(try server.store.look().hasExternalWrites)
        #expect(!server.node.takeExternalWrites(now: 5))
        #expect(try names(server, "teams") == [2: "B"])
    }

    @Test("REPLACE takes the rows in its way along, whatever the program's settings are")
    func replaceByProgram() throws {
        let server = try TestServer(Self.script)
        let other = try program(server)
        try other.execute(
            "INSERT INTO teams VALUES (1, 'A', 'a'), (2, 'B', 'b'), (3, 'C', 'c')")
        #expect(!server.node.takeExternalWrites(now: 5))
        try other.execute(
            """
            INSERT OR REPLACE INTO teams VALUES (4, 'D', 'a');
            UPDATE OR REPLACE teams SET code = 'b' WHERE id = 3;
            INSERT OR REPLACE INTO teams VALUES (4, 'E', 'e');
            INSERT OR IGNORE INTO teams VALUES (4, 'F', 'f')
            """)
        #expect(!server.node.takeExternalWrites(now: 6))
        #expect(try names(server, "teams") == [3: "C", 4: "E"])
    }

    @Test(
        "An update that would push out the row to which it refers is refused, and breaks no index")
    func pushesOut() throws {
        let server = try TestServer(
            """
            CREATE TABLE tags(id INTEGER PRIMARY KEY, code TEXT UNIQUE,
                next INTEGER REFERENCES tags ON DELETE SET NULL);
            CREATE INDEX tags_next ON tags(next)
            """)
        let other = try program(server)
        try other.execute(
            """
            PRAGMA foreign_keys = ON;
            INSERT INTO tags VALUES (1, 'a', NULL), (2, 'b', 1), (3, 'c', NULL)
            """)
        #expect(throws: SQLiteError.self) {
            try other.execute("UPDATE OR REPLACE tags SET code = 'a' WHERE id = 2")
        }
        #expect(try other.integer("SELECT count(*) FROM pragma_integrity_check") == 1)
        #expect(try other.integer("SELECT next FROM tags WHERE id = 2") == 1)
        try other.execute("UPDATE OR REPLACE tags SET code = 'c' WHERE id = 2")
        while server.node.takeExternalWrites(now: 6) {}
        #expect(try replica(server)["tags"]?.count == 2)
    }

    @Test(
        "REPLACE takes rows along that the default of a column meets, or the program is refused",
        arguments: [
            ("v INTEGER NOT NULL DEFAULT 5 UNIQUE", "NULL", true),
            ("v INTEGER NOT NULL DEFAULT '5', UNIQUE(l, v)", "NULL", true),
            ("v INTEGER NOT NULL DEFAULT 5, g TEXT AS (v || '.') UNIQUE", "NULL", true),
            ("v INTEGER NOT NULL DEFAULT (abs(random()) % 1) UNIQUE", "NULL", false),
        ])
    func defaults(_ shape: (declaration: String, value: String, isTaken: Bool)) throws {
        for statement in [
            "INSERT OR REPLACE INTO t(id, name, l, v) VALUES (3, 'second', 1, \(shape.value))",
            "UPDATE OR REPLACE t SET v = \(shape.value) WHERE id = 2",
        ] {
            let server = try TestServer(
                "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, l INTEGER, \(shape.declaration))"
            )
            let other = try program(server)
            try other.execute(
                "INSERT INTO t(id, name, l, v) VALUES (1, 'first', 1, 5), (2, 'other', 1, 6)")
            while server.node.takeExternalWrites(now: 5) {}
            if shape.isTaken {
                try other.execute(statement)
            } else {
                #expect(throws: SQLiteError.self) { try other.execute(statement) }
            }
            while server.node.takeExternalWrites(now: 6) {}
            let kept = try other.integer("SELECT count(*) FROM t WHERE id = 1")
            #expect(kept == (shape.isTaken ? 0 : 1))
            #expect((try names(server, "t")[1] == nil) == shape.isTaken, "\(statement)")
        }
    }

    @Test("REPLACE takes a row along whose key differs in case from the key's default")
    func defaultKey() throws {
        let server = try TestServer(
            "CREATE TABLE t(id TEXT PRIMARY KEY COLLATE NOCASE NOT NULL DEFAULT 'A', name TEXT)")
        let other = try program(server)
        try other.execute("INSERT INTO t VALUES ('a', 'first')")
        while server.node.takeExternalWrites(now: 5) {}
        try other.execute("INSERT OR REPLACE INTO t VALUES (NULL, 'second')")
        while server.node.takeExternalWrites(now: 6) {}
        #expect(try replica(server)["t"]?.keys.sorted() == [.text("A")])
    }

    @Test(
        "An update is refused if the deletion of the row that it would push out comes back to it",
        arguments: ["u = 'x'", "id = 1"])
    func circle(change: String) throws {
        let server = try TestServer(
            """
            CREATE TABLE p(id INTEGER PRIMARY KEY, u TEXT UNIQUE, b INTEGER REFERENCES q ON DELETE SET NULL);
            CREATE TABLE q(id INTEGER PRIMARY KEY, p INTEGER REFERENCES p ON DELETE CASCADE);
            CREATE INDEX i ON p(b);
            """)
        let other = try program(server)
        try other.execute(
            """
            PRAGMA foreign_keys = ON; INSERT INTO p VALUES (1, 'x', NULL); INSERT INTO q VALUES (5, 1);
            INSERT INTO p VALUES (2, 'z', 5), (3, 'y', NULL)
            """)
        #expect(throws: SQLiteError.self) {
            try other.execute("UPDATE OR REPLACE p SET \(change) WHERE id = 2")
        }
        #expect(try other.integer("SELECT count(*) FROM p JOIN q ON q.id = p.b") == 1)
        // Another row's deletion does not come back, and the row itself goes with others.
        try other.execute(
            """
            UPDATE OR REPLACE p SET u = 'y' WHERE id = 2; UPDATE OR REPLACE p SET u = 'y' WHERE id = 1
            """)
        while server.node.takeExternalWrites(now: 6) {}
        #expect(try other.text("PRAGMA integrity_check") == "ok")
        #expect(try replica(server)["p"]?.count == 1)
    }

    @Test(
        "REPLACE is seen under every spelling of the key and of the index in its way",
        arguments: [
            ("id INTEGER PRIMARY KEY", "lower(code)"), ("id INTEGER PRIMARY KEY", "folded"),
            ("id INTEGER PRIMARY KEY", "code COLLATE NOCASE"),
            ("id TEXT PRIMARY KEY", "code) WHERE (n > 0"),
            ("id TEXT PRIMARY KEY", "id COLLATE NOCASE"),
            ("id TEXT PRIMARY KEY COLLATE NOCASE", "code"),
        ], ["OFF", "ON"])
    func spellings(_ shape: (String, String), recursive: String) throws {
        let server = try TestServer(
            """
            CREATE TABLE things(\(shape.0), code TEXT, n INTEGER, folded TEXT AS (lower(code)));
            CREATE UNIQUE INDEX u ON things(\(shape.1))
            """)
        let other = try program(server)
        try other.execute("PRAGMA recursive_triggers = \(recursive)")
        let (one, two, three) =
            shape.0.contains("TEXT") ? ("'a'", "'b'", "'c'") : ("11", "12", "13")
        for statement in [
            "INSERT INTO things(id, code, n) VALUES (\(one), 'x', 1), (\(two), 'y', 1), (\(three), 'z', 1)",
            "INSERT OR REPLACE INTO things(id, code, n) VALUES (\(one) || '9', 'Y', 1)",
            "INSERT OR REPLACE INTO things(id, code, n) VALUES (upper(\(one)), 'k', 1)",
            "UPDATE OR REPLACE things SET code = 'Z', n = 1 WHERE code = 'k'",
            "INSERT OR REPLACE INTO things(id, code, n) VALUES (\(two), 'b', 0), (\(three), 'c', 1)",
            "UPDATE OR REPLACE things SET n = 1, code = 'c' WHERE code = 'b'",
            "INSERT OR REPLACE INTO things(id, code, n) VALUES (\(one), 'u', 1), (\(two), 'v', 1)",
            "UPDATE OR REPLACE things SET id = upper(id) WHERE code = 'v'",
            "UPDATE OR REPLACE things SET rowid = (SELECT rowid FROM things WHERE code = 'u')"
                + " WHERE code = 'v'",
            "INSERT OR REPLACE INTO things(rowid, id, code) SELECT rowid, id || '7', 'w' FROM things",
            "UPDATE things SET oid = rowid + 40",
        ] {
            // A statement may be refused; its effects up to then count as well.
            try? other.execute(statement)
            while server.node.takeExternalWrites(now: 6) {}
            var rows: [RecordID: Value] = [:]
            let found = try other.statement("SELECT id, code FROM things")
            while try found.step() { rows[try found.recordID(0)] = try found.value(1, kind: .text) }
            let replica = try replica(server)["things"] ?? [:]
            #expect(replica.mapValues { $0["code"] ?? .null } == rows, "\(statement)")
        }
    }

    @Test("Much comes in parts, and nothing refers to what is not there")
    func partsOfExternalWrites() throws {
        let server = try TestServer(Self.script)
        let other = try program(server)
        // Players come before their teams: the program does not enforce its foreign keys.
        try other.execute(
            """
            BEGIN;
            WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 300)
                INSERT INTO players (id, team_id, name) SELECT n, n, 'P' || n FROM n;
            WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 300)
                INSERT INTO teams (id, name) SELECT n, 'T' || n FROM n;
            COMMIT
            """)
        var rounds = 0
        var there: Set<String> = []
        while try server.store.look().hasExternalWrites, rounds < 100 {
            rounds += 1
            let entries = try server.store.begin(now: 5, maxBytes: 1_000)
            try server.store.commit()
            for entry in entries {
                let types = try SyncCoder.decodeChangeSet(entry.body).types
                for changes in types {
                    #expect(changes.delete.isEmpty)
                    for id in changes.update { #expect(there.contains("\(changes.name) \(id)")) }
                    for id in changes.create {
                        #expect(there.insert("\(changes.name) \(id)").inserted)
                    }
                }
                for player in types.filter({ $0.name == "players" }).flatMap(\.entries) {
                    #expect(there.contains("teams \(player.id)"))
                }
            }
        }
        #expect(rounds > 10 && rounds < 100)
        #expect(there.count == 600)
    }

    @Test("A part takes along no row under a key that no device can be sent")
    func partsWithoutKeys() throws {
        let server = try TestServer(Self.script)
        try program(server).execute(
            """
            BEGIN;
            INSERT INTO players (id, team_id) VALUES (1, 0), (2, -7), (3, \(Int64.max));
            WITH RECURSIVE n (n) AS (SELECT 4 UNION ALL SELECT n + 1 FROM n WHERE n < 300)
                INSERT INTO players (id, team_id) SELECT n, n FROM n;
            INSERT INTO teams (id, name) VALUES (0, 'zero'), (-7, 'below'), (\(Int64.max), 'far');
            WITH RECURSIVE n (n) AS (SELECT 4 UNION ALL SELECT n + 1 FROM n WHERE n < 300)
                INSERT INTO teams (id, name) SELECT n, 'T' || n FROM n;
            COMMIT
            """)
        var rounds = 0
        var made: [String: Set<RecordID>] = [:]
        while try server.store.look().hasExternalWrites, rounds < 100 {
            rounds += 1
            let entries = try server.store.begin(now: 5, maxBytes: 1_000)
            try server.store.commit()
            for changes in try entries.flatMap({ try SyncCoder.decodeChangeSet($0.body).types }) {
                made[changes.name, default: []].formUnion(changes.create)
            }
        }
        #expect(rounds > 10 && rounds < 100)
        #expect(made["players"] == Set((1...300).map { .integer($0) }))
        #expect(made["teams"] == Set((4...300).map { .integer($0) }))
    }

    @Test("Rows that no device can be sent are left out and told of")
    func unsendableRowsInFile() throws {
        let server = try TestServer(Self.script)
        let other = try program(server)
        try other.execute(
            """
            INSERT INTO teams (id, name) VALUES (-3, 'below'), (0, 'zero'), (1, x'ff'), (2, 'B')
            """)
        #expect(!server.node.takeExternalWrites(now: 5))
        #expect(server.node.takeFault() == nil)
        #expect(try names(server, "teams") == [2: "B"])
        #expect(try !server.store.look().hasExternalWrites)
        // The row is mended.
        try other.execute("UPDATE teams SET name = 'A' WHERE id = 1")
        #expect(!server.node.takeExternalWrites(now: 6))
        #expect(try names(server, "teams") == [1: "A", 2: "B"])
    }

    @Test("A file of the format before is brought along")
    func upgrade() throws {
        let server = try TestServer(Self.script)
        let other = try program(server)
        try other.execute(
            """
            DROP TRIGGER martlet_outside_insert_1; DROP TRIGGER martlet_outside_insert_2;
            DROP TRIGGER martlet_outside_update_1; DROP TRIGGER martlet_outside_update_2;
            DROP TRIGGER martlet_outside_delete_1; DROP TRIGGER martlet_outside_delete_2;
            DROP TRIGGER martlet_outside_meet_1; DROP TRIGGER martlet_outside_move_1;
            DROP TABLE martlet_outside; ALTER TABLE martlet_dataset DROP COLUMN applying;
            DROP TABLE martlet_type_views; DROP TABLE martlet_members; DROP TABLE martlet_views;
            DROP TABLE martlet_given; DROP TABLE martlet_purges;
            DROP TABLE martlet_columns;
            UPDATE martlet_meta SET value = 2 WHERE key = 'format'
            """)
        try server.restart()
        try other.execute("INSERT INTO teams (id, name) VALUES (1, 'A')")
        #expect(!server.node.takeExternalWrites(now: 5))
        #expect(try names(server, "teams") == [1: "A"])
    }
}
