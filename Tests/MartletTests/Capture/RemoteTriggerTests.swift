import Foundation
import MartletModel
import MartletProtocol
import MartletStore
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("The app's triggers and remote change")
struct RemoteTriggerTests {
    private static let script = """
        CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT NOT NULL, touched INTEGER DEFAULT 0);
        CREATE TABLE totals(id TEXT PRIMARY KEY, teams INTEGER);
        CREATE VIRTUAL TABLE found USING fts5(name);
        CREATE TRIGGER stamp AFTER UPDATE OF name ON teams BEGIN
            UPDATE teams SET touched = touched + 1 WHERE id = NEW.id;
        END;
        CREATE TRIGGER "counts on" AFTER INSERT ON teams FOR EACH ROW WHEN NEW.name <> 'on' BEGIN
            INSERT INTO totals VALUES ('all', 1) ON CONFLICT DO UPDATE SET teams = teams + 1;
            INSERT INTO 'found'(rowid, name) VALUES (NEW.id, NEW.name);
        END;
        CREATE TRIGGER refound AFTER UPDATE OF "name" ON "teams" BEGIN
            DELETE FROM found WHERE rowid = OLD.id;
            REPLACE INTO found(rowid, name) SELECT NEW.id, CASE WHEN 1 THEN NEW.name END;
            UPDATE OR REPLACE totals SET teams = 100;
        END;
        CREATE TRIGGER forbids BEFORE UPDATE ON teams WHEN NEW.name = 'forbidden' BEGIN
            SELECT RAISE(ABORT, 'no such team');
        END;
        """

    private func found(_ word: String, _ device: DeviceFixture) throws -> [[SQLValue]] {
        try device.rows("SELECT rowid FROM found WHERE found MATCH '\(word)'")
    }

    @Test("what they write to synchronised tables comes from where the edit was made, once")
    func onceFromTriggers() throws {
        let device = try DeviceFixture(script: Self.script)
        try device.apply(
            [.entry(1, .created("teams", 5, at: 1, ["name": "falcons", "touched": 0]))],
            reaching: 1)
        // The author's triggers have run, and their writes are part of its set.
        try device.apply(
            [.entry(2, .updated("teams", 5, at: 2, ["name": "hawks", "touched": 1]))], reaching: 2)
        #expect(try device.rows("SELECT name, touched FROM teams") == [["hawks", 1]])
        #expect(try device.rows("SELECT count(*) FROM totals") == [[0]])
        // The full-text index belongs to the file, and follows the change.
        #expect(try found("hawks", device) == [[5]])
        #expect(try found("falcons", device) == [])
        #expect(try device.gather().changeSets.isEmpty)
    }

    @Test(
        "what the server sent before the app had the table or the column comes in like remote change"
    )
    func gained() throws {
        func script(_ city: String, _ cities: String) -> String {
            """
            CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT\(city));
            CREATE TABLE totals(id TEXT PRIMARY KEY, teams INTEGER);
            CREATE VIRTUAL TABLE found USING fts5(name);
            CREATE TRIGGER counts AFTER UPDATE ON teams BEGIN
                INSERT INTO totals VALUES ('team ' || NEW.id, 1);
                INSERT INTO found(rowid, name) VALUES (NEW.id, NEW.name);
            END;
            CREATE TRIGGER forbids BEFORE UPDATE ON teams BEGIN SELECT RAISE(IGNORE); END;
            \(cities)
            """
        }
        let device = try DeviceFixture(script: script("", ""))
        try device.apply(
            [
                .entry(
                    1, .created("teams", 5, at: 1, ["name": "falcons", "city": "Rome"]),
                    .created("cities", 6, at: 1, ["name": "rome"]))
            ], reaching: 1)
        try device.reopen(
            script: script(
                ", city TEXT",
                """
                CREATE TABLE cities(id INTEGER PRIMARY KEY, name TEXT);
                CREATE TRIGGER others AFTER INSERT ON cities BEGIN
                    INSERT INTO totals VALUES ('cities', 1);
                    INSERT INTO found(rowid, name) VALUES (NEW.id, NEW.name);
                END;
                """))
        #expect(try device.rows("SELECT id, city FROM teams") == [[5, "Rome"]])
        #expect(try device.rows("SELECT id, name FROM cities") == [[6, "rome"]])
        #expect(try device.rows("SELECT count(*) FROM totals") == [[0]])
        #expect(try found("falcons", device) == [[5]])
        #expect(try found("rome", device) == [[6]])
        #expect(try device.gather().changeSets.isEmpty)
    }

    @Test("they run for edits made here, which send what they did")
    func here() throws {
        let device = try DeviceFixture(script: Self.script)
        try device.apply(
            [.entry(1, .created("teams", 5, at: 1, ["name": "falcons", "touched": 0]))],
            reaching: 1)
        try device.write { try $0.update("teams", .integer(5), ["name": "owls"]) }
        try device.shell("UPDATE teams SET name = 'larks' WHERE id = 5")
        #expect(try device.rows("SELECT name, touched FROM teams") == [["larks", 2]])
        #expect(try found("larks", device) == [[5]])
        let sets = try device.gather().changeSets
        #expect(sets.map { $0.types[0].entries[0].attributes["touched"] } == [1, 2])
        // When the edit is undone and redone over a change of others, the values are as they were
        // typed.
        try device.apply(
            [.entry(2, .created("teams", 6, at: 2, ["name": "doves", "touched": 7]))], reaching: 2)
        #expect(
            try device.rows("SELECT name, touched FROM teams ORDER BY id")
                == [["larks", 2], ["doves", 7]])
        #expect(try found("larks", device) == [[5]])
        #expect(try found("doves", device) == [[6]])
    }

    @Test("they are there after a transaction that was rolled back, and refuse no row")
    func rolledBack() throws {
        let device = try DeviceFixture(script: Self.script)
        #expect(throws: (any Error).self) {
            try device.apply(
                [.entry(1, .updated("teams", 9, at: 1, ["name": "nobody"]))], reaching: 1)
        }
        try device.apply(
            [.entry(1, .created("teams", 5, at: 1, ["name": "falcons"]))], reaching: 1)
        #expect(try found("falcons", device) == [[5]])
        try device.apply(
            [.entry(2, .updated("teams", 5, at: 2, ["name": "forbidden"]))], reaching: 2)
        #expect(try device.rows("SELECT name FROM teams") == [["forbidden"]])
        // Triggers that come later are found as well.
        try device.shell(
            """
            CREATE VIRTUAL TABLE later USING fts5(name);
            CREATE TRIGGER aside AFTER INSERT ON teams BEGIN INSERT INTO later VALUES (NEW.name); END
            """)
        try device.apply(
            [.entry(3, .created("teams", 6, at: 3, ["name": "hawks"]))], reaching: 3)
        #expect(try device.rows("SELECT name FROM later") == [["hawks"]])
    }

    private static let oneWay = """
        CREATE TABLE tasks(id INTEGER PRIMARY KEY, state TEXT NOT NULL, note TEXT);
        CREATE VIRTUAL TABLE found USING fts5(state);
        CREATE TRIGGER stays BEFORE DELETE ON tasks BEGIN
            SELECT RAISE(%, 'tasks are kept for ever (by law)');
        END;
        CREATE TRIGGER ends BEFORE UPDATE OF state ON tasks WHEN OLD.state = 'done' BEGIN
            SELECT CASE WHEN NEW.state <> 'done' THEN RAISE(%, 'what is done is done') END;
        END;
        CREATE TRIGGER finds AFTER INSERT ON tasks BEGIN
            INSERT INTO found(rowid, state) SELECT NEW.id,
                CASE NEW.state WHEN '' THEN RAISE(%, 'no (state)') ELSE NEW.state END;
        END;
        """

    @Test(
        "what only may be done one way is undone, made again and given its permanent id",
        arguments: ["ABORT", "FAIL", "ROLLBACK", "IGNORE"])
    func oneWay(_ way: String) throws {
        let script =
            way == "IGNORE"
            ? Self.oneWay.replacing(/%, '[^']*'/, with: way) : Self.oneWay.replacing("%", with: way)
        let device = try DeviceFixture(script: script)
        try device.write { try $0.insert("tasks", ["state": "open"]) }
        let created = try #require(try device.gather().changeSets.first?.identifier)
        try device.apply(
            [.entry(1, own: created, .created("tasks", 7, old: -2, at: 1, ["state": "open"]))],
            reaching: 1)
        #expect(try device.rows("SELECT id, state FROM tasks") == [[7, "open"]])
        // An own edit that is refused is taken back.
        try device.write { try $0.update("tasks", .integer(7), ["state": "done"]) }
        let done = try #require(try device.gather().changeSets.first?.identifier)
        try device.apply([.refusal(done, .stale)], reaching: 1)
        #expect(try device.rows("SELECT id, state FROM tasks") == [[7, "open"]])
        // What others did comes in, whatever it is.
        try device.apply(
            [.entry(2, .updated("tasks", 7, at: 2, ["state": "done"]))], reaching: 2)
        try device.apply([.entry(3, .updated("tasks", 7, at: 3, ["state": ""]))], reaching: 3)
        try device.apply([.entry(4, .created("tasks", 8, at: 4, ["state": ""]))], reaching: 4)
        #expect(
            try device.rows("SELECT id, state FROM tasks ORDER BY id") == [[7, ""], [8, ""]])
        let gone = TypeChanges(name: "tasks", delete: [.integer(7), .integer(8)])
        try device.apply([.entry(5, gone)], reaching: 5)
        #expect(try device.rows("SELECT id FROM tasks") == [])
    }
}
