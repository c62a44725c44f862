import MartletProtocol
import MartletStore
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet

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
                == [[-1, "first"], [-2, "second"]])
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

    @Test(
        "an edited record whose table is made anew is not deleted for others",
        arguments: [
            "UPDATE teams SET name = 'Hawks' WHERE id = 1",
            "REPLACE INTO teams(id, name) VALUES (1, 'Hawks')",
        ])
    func madeAnew(edit: String) throws {
        let device = try Self.device()
        try device.shell(
            "\(edit); DELETE FROM teams WHERE id = 2; DROP TABLE teams;"
                + "CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT, stamp TEXT)")
        try device.write { _ in }
        let types = try device.gather().changeSets.flatMap(\.types)
        #expect(types.flatMap(\.delete) == [.integer(2)])
        #expect(types.allSatisfy { $0.create.isEmpty && $0.update.isEmpty })
    }

    @Test("a row that is ignored leaves the keys of others as they are")
    func ignored() throws {
        let device = try Self.device()
        try device.shell(
            """
            CREATE UNIQUE INDEX names ON teams(name);
            INSERT OR IGNORE INTO teams(id, name) VALUES (\(Int64.min), 'Owls');
            INSERT OR IGNORE INTO teams(id, name) VALUES (1, 'Jays');
            INSERT INTO teams(id, name) VALUES ((SELECT id FROM martlet_new_id), 'Rooks')
            """)
        #expect(try device.rows("SELECT id FROM teams WHERE id < 0") == [[-1]])
        #expect(try Self.queued(device).count == 1)
    }
}
