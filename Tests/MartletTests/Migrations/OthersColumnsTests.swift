import MartletModel
import MartletProtocol
import MartletStore
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// Tests columns that another program adds or renames while its edits wait for the client.
@Suite("Columns changed by other programs")
struct OthersColumnsTests {
    private static let script =
        "CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT DEFAULT 'Oslo')"

    /// Teams 1, 2 and 3.
    private static func device() throws -> DeviceFixture {
        let device = try DeviceFixture(script: script)
        try device.apply(
            [
                .entry(
                    1, .created("teams", 1, at: 1, ["name": "Owls", "city": "Rome"]),
                    .created("teams", 2, at: 1, ["name": "Jays", "city": "Bonn"]),
                    .created("teams", 3, at: 1, ["name": "Terns"]))
            ], reaching: 1)
        return device
    }

    private static var deletion: ChangeSet {
        .entry(2, TypeChanges(name: "teams", delete: [.integer(3)]))
    }

    private static func sent(_ device: DeviceFixture) throws -> [Attributes] {
        try device.gather().changeSets.flatMap(\.types).flatMap(\.entries).map(\.attributes)
    }

    @Test("an edit made before a column came does not name it, and the row keeps its default")
    func added() throws {
        let device = try Self.device()
        try device.shell(
            """
            INSERT INTO teams(id, name) VALUES (-2, 'Rooks');
            UPDATE teams SET name = 'Kites' WHERE id = 1;
            ALTER TABLE teams ADD COLUMN colour TEXT DEFAULT 'red';
            ALTER TABLE teams ADD COLUMN size INTEGER NOT NULL DEFAULT 7;
            """)
        try device.reopen(script: nil)
        #expect(
            try Self.sent(device) == [
                ["name": "Rooks", "city": "Oslo"], ["name": "Kites"],
            ])
        // Over a deletion, the edits are undone and done again.
        try device.apply([Self.deletion], reaching: 2)
        #expect(
            try device.rows("SELECT id, name, city, colour, size FROM teams ORDER BY id") == [
                [-2, "Rooks", "Oslo", "red", 7], [1, "Kites", "Rome", "red", 7],
                [2, "Jays", "Bonn", "red", 7],
            ])
        #expect(try device.store.contradiction() == nil)
    }

    @Test("a value that another program gave the new column is sent, and later edits name it")
    func given() throws {
        let device = try Self.device()
        try device.shell(
            """
            UPDATE teams SET name = 'Kites' WHERE id = 1;
            ALTER TABLE teams ADD COLUMN colour TEXT DEFAULT 'red';
            UPDATE teams SET colour = 'blue' WHERE id = 2;
            INSERT INTO teams(id, name, colour) VALUES (-2, 'Rooks', 'green');
            """)
        try device.reopen(script: nil)
        #expect(
            Set(try Self.sent(device)) == [
                ["name": "Rooks", "city": "Oslo", "colour": "green"],
                ["name": "Kites"], ["colour": "blue"],
            ])
        try device.shell("UPDATE teams SET colour = 'black' WHERE id = 1")
        #expect(try Self.sent(device).last == ["colour": "black"])
        #expect(try device.store.contradiction() == nil)
    }

    /// What another program has written when the device looks at its column for the first time, or later.
    @Test(
        "a new record does not name the default of a column that the server need not have",
        arguments: [false, true])
    func newBeside(isWithheld: Bool) throws {
        let device = try Self.device()
        try device.shell(
            """
            ALTER TABLE teams ADD COLUMN colour TEXT DEFAULT 'red';
            ALTER TABLE teams ADD COLUMN size INTEGER NOT NULL DEFAULT 7;
            """)
        try device.reopen(script: nil)
        try device.shell(
            isWithheld
                ? "INSERT INTO teams(id, name) VALUES (-2, x'00')"
                : "INSERT INTO teams(id, name) VALUES (-2, 'Rooks')")
        if isWithheld {
            try device.reopen(script: nil)
            #expect(try device.store.withheldCount == 1)
            try device.shell("UPDATE teams SET name = 'Rooks' WHERE id = -2")
        }
        try device.write { try $0.insert("teams", ["name": "Hens"]) }
        #expect(
            try Self.sent(device) == [
                ["name": "Rooks", "city": "Oslo"],
                ["name": "Hens", "city": "Oslo"],
            ])
        let sets = try device.gather().changeSets.map(\.identifier)
        try device.apply(
            [
                .entry(2, own: sets[0], .created("teams", 4, old: -2, at: 2, ["name": "Rooks"])),
                .entry(3, own: sets[1], .created("teams", 5, old: -3, at: 3, ["name": "Hens"])),
                .entry(4, .created("teams", 6, at: 4, ["name": "Crows"])),
            ], reaching: 4)
        #expect(
            try device.rows("SELECT id, city, colour, size FROM teams WHERE id > 3 ORDER BY id")
                == [[4, .null, "red", 7], [5, .null, "red", 7], [6, .null, "red", 7]])
        // Another value is sent: it cannot be passed over.
        try device.shell("INSERT INTO teams(id, name, colour) VALUES (-4, 'Larks', 'blue')")
        #expect(try Self.sent(device).last?["colour"] == "blue")
        #expect(try device.store.contradiction() == nil)
    }

    @Test(
        "once the server has sent a value of the column, or the app declares it, new records name it",
        arguments: [false, true])
    func announcedColumnOfOthers(isByServer: Bool) throws {
        let device = try Self.device()
        try device.shell("ALTER TABLE teams ADD COLUMN colour TEXT DEFAULT 'red'")
        try device.reopen(script: nil)
        if isByServer {
            try device.apply(
                [.entry(2, .updated("teams", 1, at: 2, ["colour": "blue"]))], reaching: 2)
            try device.apply(
                [.entry(3, .created("teams", 4, at: 3, ["name": "Crows"]))], reaching: 3)
            #expect(try device.rows("SELECT colour FROM teams WHERE id = 4") == [[.null]])
        } else {
            try device.reopen(script: "\(Self.script.dropLast()), colour TEXT DEFAULT 'red')")
        }
        try device.shell("INSERT INTO teams(id, name) VALUES (-2, 'Rooks')")
        #expect(try Self.sent(device).last?["colour"] == "red")
    }

    @Test("a value that the server sent before the column came is taken in")
    func aside() throws {
        let device = try Self.device()
        try device.apply([.entry(2, .updated("teams", 2, at: 2, ["colour": "blue"]))], reaching: 2)
        try device.shell("ALTER TABLE teams ADD COLUMN colour TEXT DEFAULT 'red'")
        try device.reopen(script: nil)
        #expect(
            try device.rows("SELECT colour FROM teams ORDER BY id") == [["red"], ["blue"], ["red"]])
        #expect(try device.store.keptAside().isEmpty)
    }

    @Test("an edit made before a column was renamed is sent under its name of then")
    func renamedColumnAfterEdit() throws {
        let device = try Self.device()
        try device.write { try $0.update("teams", .integer(2), ["name": "Larks"]) }
        try device.shell(
            """
            UPDATE teams SET name = 'Kites', city = 'Nice' WHERE id = 1;
            ALTER TABLE teams RENAME COLUMN name TO title;
            """)
        try device.reopen(script: nil)
        try device.write { try $0.update("teams", .integer(2), ["title": "Crows"]) }
        #expect(
            try Self.sent(device) == [
                ["name": "Larks"], ["name": "Kites", "city": "Nice"],
                ["title": "Crows"],
            ])
        // Over a deletion, the edits are undone and done again.
        try device.reopen(script: nil)
        try device.apply([Self.deletion], reaching: 2)
        #expect(
            try device.rows("SELECT title, city FROM teams ORDER BY id")
                == [["Kites", "Nice"], ["Crows", "Bonn"]])
        #expect(try device.store.contradiction() == nil)
    }

    @Test("a column that gets its name back has what the server sent meanwhile")
    func renamedBack() throws {
        let device = try Self.device()
        try device.shell("ALTER TABLE teams RENAME COLUMN city TO town")
        try device.reopen(script: nil)
        try device.shell("UPDATE teams SET name = 'Gulls' WHERE id = 2")
        #expect(try Self.sent(device) == [["name": "Gulls"]])
        try device.apply(
            [
                .entry(
                    2, .updated("teams", 1, at: 2, ["city": "Paris"]),
                    .updated("teams", 2, at: 2, ["city": "Lyon"])),
                .entry(3, .created("teams", 4, at: 3, ["name": "Crows", "city": "Metz"])),
            ], reaching: 3)
        #expect(try device.store.keptAsideCount > 0)
        try device.shell("ALTER TABLE teams RENAME COLUMN town TO city")
        try device.reopen(script: nil)
        #expect(
            try device.rows("SELECT id, name, city FROM teams ORDER BY id") == [
                [1, "Owls", "Paris"], [2, "Gulls", "Lyon"], [3, "Terns", .null],
                [4, "Crows", "Metz"],
            ])
        #expect(try device.store.keptAside().isEmpty)
        #expect(try Self.sent(device) == [["name": "Gulls"]])
        #expect(try device.store.contradiction() == nil)
    }

    /// How a column comes back, with an edit that was made without the value that the server sent meanwhile.
    private static let blind = [
        "UPDATE teams SET town = 'Bern' WHERE id = 1; ALTER TABLE teams RENAME COLUMN town TO city",
        "ALTER TABLE teams RENAME COLUMN town TO city; UPDATE teams SET city = 'Bern' WHERE id = 1",
        "ALTER TABLE teams RENAME COLUMN town TO city; DELETE FROM teams WHERE id = 1",
    ]

    @Test(
        "an edit made without a value that the server had sent is refused",
        arguments: blind, [false, true])
    func unseen(edit: String, looks: Bool) throws {
        let device = try Self.device()
        try device.shell("ALTER TABLE teams RENAME COLUMN city TO town")
        try device.reopen(script: nil)
        try device.apply(
            [.entry(2, .updated("teams", 1, at: 2, ["city": "Paris"]))], reaching: 2)
        for statement in edit.split(separator: "; ") {
            try device.shell(String(statement))
            if looks { try device.reopen(script: nil) }
        }
        try device.reopen(script: nil)
        // Once the column is back, the value shows, and an edit is one of the new record.
        if edit.hasPrefix("UPDATE teams SET town") || !looks {
            #expect(try device.gather().changeSets.isEmpty)
            #expect(try device.store.parkedCount == 1)
            #expect(try device.rows("SELECT city FROM teams WHERE id = 1") == [["Paris"]])
        } else {
            let sets = try device.gather().changeSets
            #expect(sets.first?.types.first?.entries.map(\.revision) == [2])
        }
        // An edit of something else is judged as always.
        try device.shell("UPDATE teams SET name = 'Hens' WHERE id = 2")
        #expect(try device.gather().changeSets.last?.types.first?.entries.map(\.revision) == [1])
    }

    @Test("an edit of a column that came with a value kept aside is refused")
    func unseenBefore() throws {
        let device = try Self.device()
        try device.apply([.entry(2, .updated("teams", 1, at: 2, ["motto": "We"]))], reaching: 2)
        try device.shell(
            "ALTER TABLE teams ADD COLUMN motto TEXT; UPDATE teams SET motto = 'I' WHERE id = 1")
        try device.reopen(script: nil)
        #expect(try device.gather().changeSets.isEmpty)
        #expect(try device.store.parkedCount == 1)
        #expect(try device.rows("SELECT motto FROM teams WHERE id = 1") == [["We"]])
        #expect(try device.store.contradiction() == nil)
    }

    /// Two steps of another program that bring a column without the server's values.
    private static let empty = [
        ("ALTER TABLE teams RENAME COLUMN city TO town", "ALTER TABLE teams ADD COLUMN city TEXT"),
        (dropping, "ALTER TABLE teams ADD COLUMN city TEXT"),
        (dropping, "ALTER TABLE teams RENAME COLUMN name TO city"),
    ]
    private static let dropping =
        ["insert", "update", "delete"].map { "DROP TRIGGER martlet_capture_\($0)_1;" }.joined()
        + "ALTER TABLE teams DROP COLUMN city"

    @Test("a column without the values that the server sent is refused", arguments: empty, 0..<2)
    func emptied(steps: (String, String), looks: Int) throws {
        let device = try Self.device()
        try device.shell(steps.0)
        if looks != 0 { try device.reopen(script: nil) }
        try device.shell(steps.1)
        let isSeen = looks != 0 || steps.0.contains("RENAME")
        guard isSeen else {
            // Nobody can tell that the column is not the one that was there; a check finds the records.
            return
        }
        let error = #expect(throws: StoreError.self) { try device.reopen(script: nil) }
        #expect(error?.kind == .schema && error?.message.contains("“city” of “teams”") == true)
        // Nor may the app's script bring it.
        if steps.0.contains("RENAME") {
            try device.shell("ALTER TABLE teams DROP COLUMN city")
            let refused = #expect(throws: StoreError.self) {
                try device.reopen(script: Self.script)
            }
            #expect(refused?.message.contains("“town”") == true)
            try device.shell("ALTER TABLE teams RENAME COLUMN town TO city")
            try device.reopen(script: Self.script)
            #expect(try device.rows("SELECT city FROM teams WHERE id = 1") == [["Rome"]])
        }
    }

    @Test("a record that another one keeps out comes in later, if the table has a column more")
    func quarantined() throws {
        let device = try Self.device()
        try device.shell(
            "ALTER TABLE teams ADD COLUMN size TEXT NOT NULL DEFAULT 'L'; CREATE UNIQUE INDEX u ON teams(name)"
        )
        try device.reopen(script: nil)
        let whole = TypeChanges(
            name: "teams", update: [.integer(2)],
            entries: [
                RecordEntry(id: .integer(2), revision: 2, attributes: ["name": "Owls"])
            ])
        _ = try device.gather()
        _ = try? device.apply([DeviceFixture.difference(2, whole)], reaching: 2)
        #expect(try device.store.quarantinedCount == 1)
        try device.shell("DROP INDEX u")
        try device.reopen(script: nil)
        #expect(try device.store.retryQuarantined(now: 1) == 0)
        #expect(try device.rows("SELECT name, size FROM teams WHERE id = 2") == [["Owls", "L"]])
    }

    private static let swap = """
        ALTER TABLE teams RENAME COLUMN name TO t;
        ALTER TABLE teams RENAME COLUMN city TO name;
        ALTER TABLE teams RENAME COLUMN t TO city;
        """

    @Test("two columns that swap their names are refused until they swap back")
    func swappedColumns() throws {
        let device = try Self.device()
        try device.write { try $0.update("teams", .integer(2), ["name": "Larks"]) }
        try device.shell(
            "UPDATE teams SET name = 'Kites' WHERE id = 1;"
                + "UPDATE teams SET city = 'Bern' WHERE id = 3;" + Self.swap)
        let newer = #expect(throws: StoreError.self) { try device.gather() }
        #expect(newer?.kind == .newer)
        let error = #expect(throws: StoreError.self) { try device.reopen(script: nil) }
        #expect(error?.kind == .schema)
        #expect(error?.message.contains("“name” of “teams” the name “city”") == true)
        try device.shell("UPDATE teams SET name = 'Lyon' WHERE id = 2;" + Self.swap)
        try device.reopen(script: nil)
        #expect(
            try Self.sent(device) == [
                ["name": "Larks"], ["name": "Kites"],
                ["city": "Lyon"], ["city": "Bern"],
            ])
        // Over a deletion, the edits are undone and done again.
        let other = TypeChanges(name: "teams", delete: [.integer(9)])
        try device.apply([.entry(2, other)], reaching: 2)
        #expect(
            try device.rows("SELECT name, city FROM teams ORDER BY id")
                == [["Kites", "Rome"], ["Larks", "Lyon"], ["Terns", "Bern"]])
        #expect(try device.store.contradiction() == nil)
    }

    @Test("a column is refused the name that another one had before", arguments: [false, true])
    func takenName(isAway: Bool) throws {
        let device = try Self.device()
        try device.shell("ALTER TABLE teams RENAME COLUMN name TO t")
        try device.reopen(script: nil)
        try device.apply([.entry(2, .updated("teams", 1, at: 2, ["name": "Crows"]))], reaching: 2)
        try device.shell("ALTER TABLE teams RENAME COLUMN t TO u")
        try device.reopen(script: nil)
        if isAway {
            try device.shell("ALTER TABLE teams RENAME TO elsewhere")
            try device.reopen(script: nil)
            try device.shell("ALTER TABLE elsewhere RENAME TO teams")
        }
        try device.shell("ALTER TABLE teams RENAME COLUMN city TO name")
        let error = #expect(throws: StoreError.self) { try device.reopen(script: nil) }
        #expect(error?.message.contains("“city” of “teams” the name “name”") == true)
        try device.shell(
            """
            ALTER TABLE teams RENAME COLUMN name TO city;
            ALTER TABLE teams RENAME COLUMN u TO name;
            """)
        try device.reopen(script: nil)
        #expect(
            try device.rows("SELECT name, city FROM teams ORDER BY id")
                == [["Crows", "Rome"], ["Jays", "Bonn"], ["Terns", .null]])
        #expect(try device.store.keptAside().isEmpty)
        // Nothing of it is remembered: the column may have another name again.
        try device.shell("ALTER TABLE teams RENAME COLUMN city TO t")
        try device.reopen(script: nil)
    }

    @Test("edits made before a column got its name back are sent under that name")
    func home() throws {
        let device = try Self.device()
        try device.shell("UPDATE teams SET city = 'Nice' WHERE id = 1")
        try device.shell("ALTER TABLE teams RENAME COLUMN city TO town")
        try device.reopen(script: nil)
        try device.write { try $0.update("teams", .integer(2), ["town": "Ulm"]) }
        try device.shell(
            """
            UPDATE teams SET town = 'Graz' WHERE id = 3;
            ALTER TABLE teams RENAME COLUMN town TO city;
            UPDATE teams SET city = 'Wien' WHERE id = 1;
            """)
        try device.reopen(script: nil)
        #expect(
            try Self.sent(device)
                == ["Nice", "Ulm", "Wien", "Graz"].map {
                    ["city": .text($0)]
                })
        #expect(try device.store.contradiction() == nil)
    }

    @Test("notes are read by the columns that they hold, also after the table was made anew")
    func rebuilt() throws {
        let device = try Self.device()
        try device.shell(
            """
            UPDATE teams SET city = 'Nice' WHERE id = 1;
            CREATE TABLE other(id INTEGER PRIMARY KEY, size INTEGER, city TEXT, name TEXT);
            INSERT INTO other SELECT id, 3, city, name FROM teams;
            DROP TABLE teams;
            ALTER TABLE other RENAME TO teams;
            """)
        try device.reopen(script: nil)
        #expect(try Self.sent(device) == [["size": 3, "city": "Nice"]])
        try device.apply([Self.deletion], reaching: 2)
        #expect(
            try device.rows("SELECT name, city FROM teams ORDER BY id")
                == [["Owls", "Nice"], ["Jays", "Bonn"]])
        #expect(try device.store.contradiction() == nil)
    }
}
