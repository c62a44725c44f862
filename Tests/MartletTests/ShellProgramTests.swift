import Foundation
import MartletModel
internal import MartletProtocol
import MartletStore
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// Writing to a device's file with the real `sqlite3` program, with its own settings: foreign keys
/// off, recursive triggers off. What `docs/interop.md` says is tried here.
@Suite("The sqlite3 shell on a device's file")
struct ShellProgramTests {
    /// Runs the program on the device's file.
    /// - Returns: Its exit status, and what it printed to either stream.
    @discardableResult
    private func shell(
        _ sql: String, on device: DeviceFixture
    ) throws -> (status: Int32, said: String) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["sqlite3", "-batch", "-bail", device.path, sql]
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let said = String(
            decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        process.waitUntilExit()
        return (process.terminationStatus, said)
    }

    /// A team with two players, as the server has them.
    private func device() throws -> DeviceFixture {
        let device = try DeviceFixture()
        try device.apply(
            [
                .entry(1, .created("teams", 1, at: 1, ["name": "Falcons"])),
                .entry(
                    2, .created("players", 1, at: 2, ["name": "Ann", "team_id": 1, "shirt": 10])),
                .entry(
                    3, .created("players", 2, at: 3, ["name": "Bea", "team_id": 1, "shirt": 20])),
            ], reaching: 3)
        return device
    }

    @Test("inserts, updates and deletes of the shell are sent, as one change set")
    func captured() throws {
        let device = try device()
        let run = try shell(
            """
            INSERT INTO teams(id, name) SELECT id, 'Owls' FROM martlet_new_id;
            UPDATE players SET team_id = -2, name = 'Anne' WHERE id = 1;
            DELETE FROM players WHERE id = 2;
            """, on: device)
        #expect(run.status == 0, "\(run.said)")
        let set = try #require(try device.gather().changeSets.first)
        let teams = try #require(set.types.first { $0.name == "teams" })
        let players = try #require(set.types.first { $0.name == "players" })
        #expect(teams.create == [.integer(-2)])
        #expect(players.update == [.integer(1)])
        #expect(players.entries[0].attributes == ["team_id": -2, "name": "Anne"])
        #expect(players.delete == [.integer(2)])
        #expect(try device.gather().changeSets.count == 1)
    }

    @Test("several rows in one statement take their keys downwards from the next one")
    func severalRows() throws {
        let device = try device()
        // The next key is computed once a statement, so taking it twice collides.
        let twice = try shell(
            """
            INSERT INTO teams(id, name) VALUES
                ((SELECT id FROM martlet_new_id), 'A'), ((SELECT id FROM martlet_new_id), 'B');
            """, on: device)
        #expect(twice.status != 0)
        #expect(twice.said.contains("UNIQUE"))
        #expect(try device.gather().changeSets.isEmpty)
        let counted = try shell(
            """
            WITH new(name) AS (VALUES ('A'), ('B'))
            INSERT INTO teams(id, name)
                SELECT (SELECT id FROM martlet_new_id) + 1 - row_number() OVER (), name FROM new;
            """, on: device)
        #expect(counted.status == 0, "\(counted.said)")
        #expect(
            try device.gather().changeSets.first?.types[0].create == [.integer(-2), .integer(-3)])
    }

    @Test("without a key from martlet_new_id an insert is refused with what to do")
    func keysMissingInShell() throws {
        let device = try device()
        let run = try shell("INSERT INTO teams(name) VALUES ('Owls')", on: device)
        #expect(run.status != 0)
        #expect(run.said.contains("martlet_new_id"))
        #expect(try device.gather().changeSets.isEmpty)
    }

    @Test("foreign keys are off in the shell: a cascade runs only where they are switched on")
    func foreignKeys() throws {
        let off = try device()
        try shell("DELETE FROM teams WHERE id = 1", on: off)
        #expect(try off.rows("SELECT count(*) FROM players WHERE team_id = 1") == [[2]])
        let bare = try #require(try off.gather().changeSets.first)
        #expect(bare.types.map(\.name) == ["teams"])

        let on = try device()
        try shell("PRAGMA foreign_keys = ON; DELETE FROM teams WHERE id = 1", on: on)
        #expect(try on.rows("SELECT count(*) FROM players") == [[0]])
        let whole = try #require(try on.gather().changeSets.first)
        #expect(
            whole.types.first { $0.name == "players" }?.delete.sorted()
                == [.integer(1), .integer(2)])
    }

    @Test("triggers are captured with trusted_schema off: they use built-in functions only")
    func trustedSchema() throws {
        let device = try device()
        let run = try shell(
            """
            PRAGMA trusted_schema = OFF;
            INSERT INTO teams(id, name) SELECT id, 'Owls' FROM martlet_new_id;
            UPDATE teams SET name = 'Hawks' WHERE id = 1;
            """, on: device)
        #expect(run.status == 0, "\(run.said)")
        let set = try #require(try device.gather().changeSets.first)
        #expect(set.types[0].create == [.integer(-2)])
        #expect(set.types[0].update == [.integer(1)])
    }

    @Test("with trusted_schema off a write to a table with a full-text index is refused whole")
    func fullText() throws {
        let device = try DeviceFixture(
            script: """
                CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT);
                CREATE VIRTUAL TABLE notes_search USING fts5(body, content='notes');
                CREATE TRIGGER notes_search_insert AFTER INSERT ON notes BEGIN
                    INSERT INTO notes_search(rowid, body) VALUES (NEW.rowid, NEW.body);
                END;
                """)
        let insert = "INSERT INTO notes(id, body) VALUES ('a', 'left knee')"
        let refused = try shell("PRAGMA trusted_schema = OFF; \(insert)", on: device)
        #expect(refused.status != 0)
        #expect(refused.said.contains("unsafe use of virtual table"))
        #expect(try device.gather().changeSets.isEmpty)
        let run = try shell("PRAGMA trusted_schema = ON; \(insert)", on: device)
        #expect(run.status == 0, "\(run.said)")
        #expect(try device.gather().changeSets.first?.types[0].create == [.text("a")])
    }

    @Test("recursive triggers are off in the shell: what a REPLACE pushes out is captured still")
    func replaceInShell() throws {
        let device = try device()
        let run = try shell(
            "PRAGMA recursive_triggers;"
                + "REPLACE INTO players(id, name, shirt) VALUES (1, 'Cia', 20)", on: device)
        #expect(run.said == "0\n")
        let set = try #require(try device.gather().changeSets.first)
        #expect(set.types[0].update == [.integer(1)])
        #expect(set.types[0].delete == [.integer(2)])
    }

    @Test("a DELETE without WHERE is captured row by row")
    func deleteAll() throws {
        let device = try device()
        try shell("DELETE FROM players", on: device)
        let set = try #require(try device.gather().changeSets.first)
        #expect(set.types[0].delete.sorted() == [.integer(1), .integer(2)])
    }

    @Test(
        "what is written after the triggers were dropped is never sent; they are back after opening"
    )
    func droppedTriggers() throws {
        let device = try device()
        let names = try shell(
            "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND name GLOB 'martlet_*'",
            on: device)
        let drops = names.said.split(separator: "\n").map { "DROP TRIGGER \($0);" }
        #expect(drops.count > 10)
        try shell(
            drops.joined() + "UPDATE teams SET name = 'Unseen' WHERE id = 1", on: device)
        #expect(try device.gather().changeSets.isEmpty)
        try device.reopen()
        try shell("UPDATE teams SET city = 'Bergen' WHERE id = 1", on: device)
        let set = try #require(try device.gather().changeSets.first)
        #expect(set.types[0].entries[0].attributes == ["city": "Bergen"])
        #expect(try device.rows("SELECT name FROM teams WHERE id = 1") == [["Unseen"]])
    }

    @Test("what is saved after a table was made anew is captured, without opening the file again")
    func rebuiltTable() throws {
        let device = try device()
        try shell(
            """
            BEGIN; CREATE TABLE other AS SELECT * FROM teams; DROP TABLE teams;
            CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT);
            INSERT INTO teams SELECT id, name, city FROM other; DROP TABLE other;
            INSERT INTO teams(id, name) SELECT id, 'Unseen' FROM martlet_new_id; COMMIT;
            """, on: device)
        // Nobody saw the row under the key that would have been the next one.
        try device.write { try $0.insert("teams", ["name": "Larks"]) }
        try shell("UPDATE teams SET city = 'Bergen' WHERE id = 1", on: device)
        let sets = try device.gather().changeSets
        #expect(sets.map { $0.types.map(\.name) } == [["teams"], ["teams"]])
        #expect(sets[0].types[0].create.count == 1)
        #expect(sets[1].types[0].update == [.integer(1)])
        // So is it where the old table stays, and takes the triggers along.
        try shell(
            """
            PRAGMA legacy_alter_table = ON; ALTER TABLE notes RENAME TO old_notes;
            CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT);
            """, on: device)
        try device.write { try $0.insert("notes", ["body": "new"]) }
        #expect(try device.gather().changeSets.last?.types.map(\.name) == ["notes"])
    }

    @Test("a column is dropped together with the triggers, which the next look makes again")
    func droppedColumn() throws {
        let device = try device()
        #expect(throws: (any Error).self) {
            try device.shell("ALTER TABLE teams DROP COLUMN city")
        }
        let triggers = try device.rows(
            """
            SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = 'teams'
                AND name GLOB 'martlet_capture_*'
            """)
        var drops = ""
        for case .text(let name)? in triggers.map(\.first) { drops += "DROP TRIGGER \(name);" }
        try shell(
            "UPDATE teams SET name = 'Jays' WHERE id = 1;"
                + "BEGIN; \(drops) ALTER TABLE teams DROP COLUMN city; COMMIT", on: device)
        try device.reopen(script: nil)
        try shell("UPDATE teams SET name = 'Kites' WHERE id = 1", on: device)
        let sets = try device.gather().changeSets
        #expect(
            sets.flatMap(\.types).flatMap(\.entries).map(\.attributes)
                == [["name": "Jays"], ["name": "Kites"]])
    }

    @Test("rows that a REPLACE pushes out by an index that was made meanwhile are captured")
    func newIndex() throws {
        let device = try device()
        try shell("CREATE UNIQUE INDEX one_each ON players(lower(name))", on: device)
        try device.write {
            _ = try $0.rows(
                "INSERT OR REPLACE INTO players(id, name) SELECT id, 'ANN' FROM martlet_new_id")
        }
        let set = try #require(device.gather().changeSets.first)
        #expect(set.types[0].delete == [.integer(1)])
        #expect(set.types[0].create == [.integer(-2)])
        // The save has made the triggers for it, which the shell needs: it runs no others.
        let run = try shell(
            "PRAGMA recursive_triggers;"
                + "INSERT OR REPLACE INTO players(id, name) SELECT id, 'BEA' FROM martlet_new_id",
            on: device)
        #expect(run.said == "0\n")
        let other = try #require(device.gather().changeSets.last)
        #expect(other.types[0].delete == [.integer(2)])
        #expect(other.types[0].create == [.integer(-3)])
    }

    @Test("a table that lost a column is refused at the next save")
    func lostColumn() throws {
        let device = try device()
        try shell(
            "DROP TABLE teams; CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT NOT NULL)",
            on: device)
        #expect {
            try device.write { try $0.insert("teams", ["name": "Larks"]) }
        } throws: {
            ($0 as? StoreError)?.kind == .newer
        }
    }

    @Test("a dropped table takes its records without a trace: nothing is sent")
    func droppedTable() throws {
        let device = try device()
        try shell("DROP TABLE notes; DROP TABLE players", on: device)
        #expect(try device.gather().changeSets.isEmpty)
    }
}
