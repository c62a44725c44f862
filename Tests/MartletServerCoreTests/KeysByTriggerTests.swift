import Foundation
import MartletModel
import MartletProtocol
import SQLiteKit
import SQLiteRecords
import SetTexts
import Synchronization
import Testing

@testable import MartletEmbedded
@testable import MartletServerCore

@Suite("Rows whose keys no device can be sent, behind a set's statements")
struct KeysByTriggerTests {
    /// A trigger makes a row under whatever key a member writes; another one, under a text that he does.
    private static let script = """
        CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT, next INTEGER, code TEXT);
        CREATE TABLE seats (id INTEGER PRIMARY KEY, team INTEGER REFERENCES teams ON DELETE SET NULL);
        CREATE TABLE codes (id TEXT PRIMARY KEY, note TEXT);
        CREATE TRIGGER seat AFTER INSERT ON teams WHEN NEW.next IS NOT NULL
            BEGIN INSERT INTO seats (id) VALUES (NEW.next); END;
        CREATE TRIGGER code AFTER INSERT ON teams WHEN NEW.code IS NOT NULL
            BEGIN INSERT INTO codes (id) VALUES (NEW.code); END;
        """

    /// Tells of rows that are left out, by table, key and reason.
    private final class Told: Sendable {
        private let lines = Mutex<[String]>([])

        var rows: UnsendableRows {
            UnsendableRows { row, _ in
                self.lines.withLock { $0.append("\(row.type) \(row.id): \(row.reason)") }
            }
        }

        var all: [String] { lines.withLock { $0 } }
    }

    static let keys = [
        (#""next":0"#, "seats 0: its key is not positive"),
        (#""next":-1"#, "seats -1: its key is not positive"),
        (
            #""next":\#(Int64.max)"#,
            "seats \(Int64.max): its key is greater than \(Limits.greatestKey), the greatest that is synchronised"
        ),
        (#""code":"""#, "codes : its key cannot be sent: expected an id, found empty text"),
    ]

    @Test(
        "are left out and told of; the set is accepted, and every device goes on", arguments: keys)
    func madeUnderBadKey(value: String, told line: String) throws {
        let server = try TestServer(Self.script)
        let told = Told()
        let store = try EmbeddedStore(
            path: server.path, script: Self.script, identity: "other", now: 1,
            unsendable: told.rows)
        let node = try DataSetNode(store: store)
        func ask(_ json: String) throws -> SyncAnswer {
            try SyncCoder.decodeAnswer(
                try node.process([try server.admitted(json)], now: 2)[0].get().body)
        }
        let set = SetText("a1", sequence: 1).create("teams", "-1", #""name":"Red",\#(value)"#)
        let answer = try ask(#"{"clientId":"d1","maxRevision":0,"changeSets":[\#(set)]}"#)
        #expect(answer.changeSets.map(\.conflict) == [false])
        #expect(answer.changeSets[0].types.map(\.name) == ["teams"])
        #expect(told.all == [line])
        #expect(
            try server.rows("SELECT (SELECT count(*) FROM seats) + (SELECT count(*) FROM codes)")
                == "1")
        for rows in ["", #""rows":true,"#] {
            let pull = try ask(#"{\#(rows)"maxRevision":0,"changeSets":[]}"#)
            let types = pull.changeSets.flatMap(\.types).filter { !$0.entries.isEmpty }
            #expect(types.map(\.name) == ["teams"])
        }
        let path = server.folder.appendingPathComponent("all.sqlite").path
        _ = try SnapshotMaker(path: server.path).make { _ in path }
        try SnapshotReader(path: path).verify()
    }

    @Test("that are neither numbers nor texts hold up no set")
    func noKeys() throws {
        let server = try TestServer(
            """
            CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE codes (id TEXT PRIMARY KEY);
            CREATE TRIGGER code AFTER INSERT ON teams
                BEGIN INSERT INTO codes VALUES (x'01ff'), (CAST(x'ff' AS TEXT)); END;
            """)
        let made = try server.send(
            SetText("a1", sequence: 1).create("teams", "-1", #""name":"Red""#))
        #expect(made.fate == "accepted 1")
        #expect(made.types.map(\.name) == ["teams"])
        #expect(try server.rows("SELECT count(*) FROM codes") == "2")
    }
}

@Suite("Rows whose keys no device can be sent, under a record that a device deletes")
struct KeysUnderDeletedTests {
    /// The type of the seats' keys, and three keys that no device can be sent.
    private static let keys = [
        ("INTEGER", ["0", "-7", "\(Int64.max)"]),
        ("TEXT", ["''", "'a' || char(0)", "5 || char(0)"]),
    ]

    private static func server(_ key: String, _ action: String) throws -> TestServer {
        try TestServer(
            """
            CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE seats (
                id \(key) PRIMARY KEY, team INTEGER REFERENCES teams ON DELETE \(action));
            CREATE TABLE badges (
                id INTEGER PRIMARY KEY, seat \(key) REFERENCES seats ON DELETE CASCADE);
            """)
    }

    @Test(
        "are changed or deleted with it, and devices are told of neither",
        arguments: keys, ["SET NULL", "CASCADE"])
    func deletedWithParentInFile(keys: (type: String, unsendable: [String]), action: String) throws
    {
        let server = try Self.server(keys.type, action)
        try server.send(SetText("a1", sequence: 1).create("teams", "-1", #""name":"Red""#))
        let rows = keys.unsendable.map { "(\($0), 1)" }.joined(separator: ", ")
        try server.execute("INSERT INTO seats VALUES \(rows)")
        #expect(!server.node.takeExternalWrites(now: 5))
        let made = try server.send(
            SetText("a2", sequence: 2).delete("teams", "1", #""revision":1"#))
        #expect(made.fate == "accepted 2")
        #expect(made.content == "teams delete [1]")
        #expect(
            try server.rows("SELECT count(*), count(team) FROM seats")
                == (action == "CASCADE" ? "0|0" : "3|0"))
        // As another device receives it.
        let pull = try server.answer(#"{"clientId":"d2","maxRevision":1,"changeSets":[]}"#)
        #expect(pull.changeSets.map(\.content) == ["teams delete [1]"])
    }

    @Test(
        "are not in the truth beside a refusal, whatever the action",
        arguments: keys, ["SET NULL", "CASCADE"])
    func refusedWithoutLostKeysInFile(keys: (type: String, unsendable: [String]), action: String)
        throws
    {
        let server = try Self.server(keys.type, action)
        try server.send(SetText("a1", sequence: 1).create("teams", "-1", #""name":"Red""#))
        let rows = keys.unsendable.map { "(\($0), 1)" }.joined(separator: ", ")
        try server.execute(
            "INSERT INTO seats VALUES \(rows); UPDATE teams SET name = 'Blue' WHERE id = 1")
        #expect(!server.node.takeExternalWrites(now: 5))
        let stale = try server.send(
            SetText("a2", sequence: 2).delete("teams", "1", #""revision":1"#), at: 1)
        #expect(stale.fate == "stale")
        #expect(stale.content == "teams update [1] 1@2(name=Blue)")
    }

    @Test("take along the records that refer to them, which devices know", arguments: keys)
    func beneath(keys: (type: String, unsendable: [String])) throws {
        let server = try Self.server(keys.type, "CASCADE")
        try server.send(SetText("a1", sequence: 1).create("teams", "-1", #""name":"Red""#))
        try server.execute(
            """
            INSERT INTO seats VALUES (\(keys.unsendable[0]), 1);
            INSERT INTO badges VALUES (5, \(keys.unsendable[0]))
            """)
        #expect(!server.node.takeExternalWrites(now: 5))
        let outside = try server.answer(#"{"clientId":"d2","maxRevision":1,"changeSets":[]}"#)
        #expect(outside.changeSets.flatMap(\.types).map(\.name) == ["badges"])
        let made = try server.send(
            SetText("a2", sequence: 2).delete("teams", "1", #""revision":1"#))
        #expect(made.fate == "accepted 3")
        #expect(made.content == "teams delete [1]; badges delete [5]")
        #expect(try server.rows("SELECT count(*) FROM badges") == "0")
    }
}
