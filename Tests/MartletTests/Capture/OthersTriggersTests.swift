import MartletModel
internal import MartletProtocol
import MartletStore
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// Tests triggers that another program makes after those of capture, which SQLite runs before them.
@Suite("Triggers made after those of capture")
struct OthersTriggersTests {
    static let script = """
        CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT, stamp TEXT);
        CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT, stamp TEXT);
        """

    /// Teams 1 to 3.
    private static func device() throws -> DeviceFixture {
        let device = try DeviceFixture(script: script)
        try device.apply(
            [
                .entry(
                    1, .created("teams", 1, at: 1, ["name": "Owls"]),
                    .created("teams", 2, at: 1, ["name": "Jays"]),
                    .created("teams", 3, at: 1, ["name": "Kites"]))
            ], reaching: 1)
        return device
    }

    /// What one look at another program's writes queues, as lines.
    private static func queued(_ device: DeviceFixture) throws -> [String] {
        try device.write { _ in }
        return try device.gather().changeSets.flatMap { set in
            set.types.flatMap { type in
                type.entries.map { entry in
                    let kind = type.create.contains(entry.id) ? "+" : ""
                    return "\(kind)\(type.name) \(entry.attributes)"
                } + type.delete.map { "-\(type.name) \($0)" }
            }
        }
    }

    @Test("an edit is sent with what a trigger adds", arguments: ["", "TEMP"])
    func updates(kind: String) throws {
        let device = try Self.device()
        try device.shell(
            """
            CREATE \(kind) TRIGGER touch AFTER UPDATE OF name ON teams BEGIN
                UPDATE teams SET stamp = 'now' WHERE id = NEW.id;
            END;
            UPDATE teams SET name = 'Hawks' WHERE id = 1
            """)
        let queued = try Self.queued(device)
        #expect(queued.count == 1)
        #expect(queued.first?.contains("Hawks") == true && queued.first?.contains("now") == true)
    }

    @Test("a new record is sent as one", arguments: ["teams", "notes"])
    func inserts(table: String) throws {
        let device = try Self.device()
        let key = table == "teams" ? "(SELECT id FROM martlet_new_id)" : "'b'"
        try device.shell(
            """
            CREATE TRIGGER touch AFTER INSERT ON \(table) BEGIN
                UPDATE \(table) SET stamp = 'now' WHERE id = NEW.id;
            END;
            INSERT INTO \(table)(id) VALUES (\(key))
            """)
        let queued = try Self.queued(device)
        #expect(queued.count == 1)
        #expect(queued.first?.contains("+") == true && queued.first?.contains("now") == true)
    }

    @Test("a record that a trigger puts back is no new one, and not deleted")
    func putBack() throws {
        let device = try Self.device()
        try device.shell(
            """
            CREATE TRIGGER again AFTER DELETE ON teams BEGIN
                INSERT INTO teams VALUES (OLD.id, OLD.name, 'back');
            END;
            DELETE FROM teams WHERE id = 1
            """)
        let queued = try Self.queued(device)
        #expect(queued.count == 1)
        #expect(queued.first?.contains("+") == false && queued.first?.contains("back") == true)
    }

    @Test("a record that a trigger adds gets a key of its own")
    func adds() throws {
        let device = try Self.device()
        try device.shell(
            """
            CREATE TRIGGER second AFTER INSERT ON teams WHEN NEW.name = 'first' BEGIN
                INSERT INTO teams(id, name) VALUES ((SELECT id FROM martlet_new_id), 'second');
            END;
            INSERT INTO teams(id, name) VALUES ((SELECT id FROM martlet_new_id), 'first')
            """)
        #expect(
            try device.rows("SELECT id, name FROM teams WHERE id < 0 ORDER BY id DESC")
                == [[-2, "first"], [-3, "second"]])
        #expect(try Self.queued(device).count == 2)
    }

    @Test("a row without a key never takes that of a record that was just deleted")
    func withoutKey() throws {
        let device = try Self.device()
        try device.shell("DELETE FROM teams WHERE id = 3")
        #expect(throws: SQLiteError.self) {
            try device.shell("INSERT INTO teams(name) VALUES ('Rooks')")
        }
        // A program that names the key puts the record back.
        try device.shell("INSERT INTO teams(id, name) VALUES (3, 'Kestrels')")
        let queued = try Self.queued(device)
        #expect(queued.count == 1 && queued.first?.contains("Kestrels") == true)
        #expect(queued.first?.contains("+") == false)
    }

    /// Tries keys that the server could not take behind a trigger that ends the statement early. SQLite runs a
    /// trigger of the shell's own connection before all others.
    @Test(
        "a trigger that ends a statement early lets no key in",
        arguments: ["", "TEMP"], ["BEFORE", "AFTER"])
    func endedEarly(kind: String, when: String) throws {
        let device = try Self.device()
        let early = """
            CREATE \(kind) TRIGGER early \(when) INSERT ON teams WHEN NEW.name = 'early' BEGIN
                SELECT RAISE(IGNORE);
            END;
            """
        let keys = ["NULL", "0", "77", "-1", "-50 * (1 << 40)"]
        for key in keys + ["(SELECT id FROM martlet_new_id)"] {
            _ = try? device.shell(
                "\(early) INSERT INTO teams(id, name) VALUES (\(key), 'early'); DROP TRIGGER early")
            _ = try? device.shell("DROP TRIGGER IF EXISTS early")
        }
        let rows = try device.rows("SELECT id FROM teams WHERE id NOT IN (1, 2, 3)")
        #expect(rows.count == (when == "AFTER" ? 1 : 0))
        #expect(try Self.queued(device).count == rows.count)
    }

    @Test("each row of a statement has its key judged")
    func judgesEach() throws {
        let device = try Self.device()
        for key in ["NULL", "77"] {
            #expect(throws: SQLiteError.self) {
                try device.shell(
                    """
                    INSERT INTO teams(id, name)
                        VALUES ((SELECT id FROM martlet_new_id), 'a'), (\(key), 'b')
                    """)
            }
        }
        #expect(try Self.queued(device).isEmpty)
    }

    @Test("a row without a key does not take that of a new record that was deleted")
    func withoutKeyBelow() throws {
        let device = try Self.device()
        try device.shell(
            """
            INSERT INTO teams(id, name)
                SELECT (SELECT id FROM martlet_new_id) + 1 - id, name FROM teams;
            DELETE FROM teams WHERE id = (SELECT max(id) FROM teams WHERE id < 0);
            DELETE FROM teams WHERE id > 0
            """)
        #expect(throws: SQLiteError.self) {
            try device.shell("INSERT INTO teams(name) VALUES ('Rooks')")
        }
        #expect(throws: SQLiteError.self) {
            try device.shell("INSERT INTO teams(id, name) VALUES (-1, 'Rooks')")
        }
        #expect(try device.rows("SELECT count(*) FROM teams") == [[2]])
    }

    @Test(
        "an edited record whose table is recreated is not deleted for others",
        arguments: [
            "UPDATE teams SET name = 'Hawks' WHERE id = 1",
            "REPLACE INTO teams(id, name) VALUES (1, 'Hawks')",
        ])
    func recreatedTable(edit: String) throws {
        let device = try Self.device()
        try device.shell(
            "\(edit); DELETE FROM teams WHERE id = 2; DROP TABLE teams;"
                + "CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT, stamp TEXT)")
        try device.write { _ in }
        let types = try device.gather().changeSets.flatMap(\.types)
        #expect(types.flatMap(\.delete) == [.integer(2)])
        #expect(types.allSatisfy { $0.create.isEmpty && $0.update.isEmpty })
    }

    @Test("a row that is ignored is no record, and its key is judged like any other")
    func ignored() throws {
        let device = try Self.device()
        try device.shell(
            """
            CREATE UNIQUE INDEX names ON teams(name);
            INSERT OR IGNORE INTO teams(id, name) SELECT id, 'Owls' FROM martlet_new_id;
            INSERT OR IGNORE INTO teams(id, name) VALUES (1, 'Jays');
            INSERT INTO teams(id, name) VALUES ((SELECT id FROM martlet_new_id), 'Rooks')
            """)
        #expect(try device.rows("SELECT id FROM teams WHERE id < 0") == [[-3]])
        #expect(try Self.queued(device).count == 1)
        for key in ["NULL", "\(Int64.min)"] {
            #expect(throws: SQLiteError.self) {
                try device.shell(
                    "INSERT INTO teams(id, name) VALUES (\(key), 'Owls') ON CONFLICT DO NOTHING")
            }
        }
    }
}
