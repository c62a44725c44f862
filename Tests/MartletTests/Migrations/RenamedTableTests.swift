import MartletModel
import MartletProtocol
import MartletStore
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// Tests tables to which another program gives other names while its edits wait for the client.
@Suite("Tables renamed by other programs")
struct RenamedTableTests {
    private static let script = """
        CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE clubs(id INTEGER PRIMARY KEY, name TEXT);
        CREATE TABLE players(id INTEGER PRIMARY KEY, name TEXT, team_id INTEGER REFERENCES teams)
        """
    private static let away = "ALTER TABLE teams RENAME TO elsewhere"
    private static let back = "ALTER TABLE elsewhere RENAME TO teams"
    private static let swap =
        "ALTER TABLE teams RENAME TO t; ALTER TABLE clubs RENAME TO teams; ALTER TABLE t RENAME TO clubs"

    /// Teams and clubs 1, 2 and 3.
    private static func device() throws -> DeviceFixture {
        let device = try DeviceFixture(script: script)
        let types = ["teams", "clubs"].map { name in
            TypeChanges(
                name: name, create: [.integer(1), .integer(2), .integer(3)],
                entries: (1...3).map {
                    RecordEntry(
                        id: .integer($0), revision: 1, attributes: ["name": "Owls"])
                })
        }
        var set = ChangeSet(types: types)
        set.revision = 1
        try device.apply([set], reaching: 1)
        return device
    }

    /// Returns the records that the device would send, as “type id name”.
    private static func sent(_ device: DeviceFixture) throws -> Set<String> {
        var sent: Set<String> = []
        for type in try device.gather().changeSets.flatMap(\.types) {
            for entry in type.entries {
                sent.insert("\(type.name) \(entry.id) \(entry.attributes["name"] ?? .null)")
            }
        }
        return sent
    }

    private static func text(_ type: String, _ id: Int64, _ name: String) -> String {
        "\(type) \(RecordID.integer(id)) \(Value.text(name))"
    }

    private static func refusal(_ device: DeviceFixture) -> StoreError? {
        do {
            try device.reopen(script: nil)
            return nil
        } catch {
            return error as? StoreError
        }
    }

    @Test("all that is written before, between and after is sent", arguments: 0..<16)
    func between(looks: Int) throws {
        let device = try Self.device()
        let steps = [
            """
            UPDATE teams SET name = 'A' WHERE id = 1;
            INSERT INTO teams(id, name) SELECT id, 'a' FROM martlet_new_id;
            """, Self.away,
            """
            UPDATE elsewhere SET name = 'B' WHERE id = 2;
            INSERT INTO elsewhere(id, name) SELECT id, 'b' FROM martlet_new_id;
            """, Self.back,
            """
            UPDATE teams SET name = 'C' WHERE id = 3;
            INSERT INTO teams(id, name) SELECT id, 'c' FROM martlet_new_id;
            """,
        ]
        for (index, step) in steps.enumerated() {
            try device.shell(step)
            if looks & 1 << index != 0 { try device.reopen(script: nil) }
            // The app that has the file open looks as well. It may be refused, and loses nothing.
            _ = try? device.gather()
        }
        try device.reopen(script: nil)
        #expect(try device.store.awaitingTableCount == 0)
        #expect(
            try Self.sent(device) == [
                Self.text("teams", 1, "A"), Self.text("teams", 2, "B"), Self.text("teams", 3, "C"),
                Self.text("teams", -2, "a"), Self.text("teams", -3, "b"),
                Self.text("teams", -4, "c"),
            ])
        #expect(try device.store.contradiction() == nil)
    }

    @Test("while a table is away, what is written to it waits, and all else goes on")
    func waitingForTable() throws {
        let device = try Self.device()
        try device.shell(Self.away)
        try device.reopen(script: nil)
        try device.shell("UPDATE elsewhere SET name = 'B' WHERE id = 2")
        try device.reopen(script: nil)
        #expect(try device.store.awaitingTableCount == 1)
        try device.write { try $0.update("clubs", .integer(1), ["name": "K"]) }
        #expect(try Self.sent(device) == [Self.text("clubs", 1, "K")])
        #expect(try device.store.awaitingTableCount == 1)
        // A new table in its place would be empty.
        let error = #expect(throws: StoreError.self) { try device.reopen(script: Self.script) }
        #expect(error?.message.contains("“teams” the name “elsewhere”") == true)
        try device.shell(Self.back)
        try device.reopen(script: Self.script)
        #expect(
            try Self.sent(device) == [Self.text("clubs", 1, "K"), Self.text("teams", 2, "B")])
    }

    @Test("two tables that swap names are refused until they swap back", arguments: 0..<4)
    func swappedTables(looks: Int) throws {
        let device = try Self.device()
        try device.shell("UPDATE teams SET name = 'A' WHERE id = 1")
        if looks & 1 != 0 { try device.reopen(script: nil) }
        try device.shell(Self.swap + "; UPDATE clubs SET name = 'B' WHERE id = 2")
        #expect(throws: StoreError.self) { try device.gather() }
        if looks & 2 != 0 { #expect(Self.refusal(device)?.kind == .schema) }
        try device.shell(Self.swap + "; UPDATE teams SET name = 'C' WHERE id = 3")
        try device.reopen(script: nil)
        #expect(
            try Self.sent(device) == [
                Self.text("teams", 1, "A"), Self.text("teams", 2, "B"), Self.text("teams", 3, "C"),
            ])
    }

    @Test("a table under the name of another one is refused until it has its own name again")
    func knownName() throws {
        let device = try Self.device()
        try device.shell("UPDATE teams SET name = 'A' WHERE id = 1; DROP TABLE clubs")
        try device.shell("ALTER TABLE teams RENAME TO clubs")
        try device.shell("UPDATE clubs SET name = 'B' WHERE id = 2")
        #expect(Self.refusal(device)?.message.contains("“teams” the name “clubs”") == true)
        try device.shell("ALTER TABLE clubs RENAME TO teams")
        try device.reopen(script: nil)
        #expect(try Self.sent(device) == [Self.text("teams", 1, "A"), Self.text("teams", 2, "B")])
    }

    @Test("a table that takes the place of a dropped one is that type's table", arguments: 0..<4)
    func successor(looks: Int) throws {
        let device = try Self.device()
        try device.shell("CREATE TABLE other(name TEXT, id INTEGER PRIMARY KEY)")
        try device.reopen(script: nil)
        try device.shell(
            """
            UPDATE martlet_control SET capture = 0;
            INSERT INTO other SELECT name, id FROM clubs;
            UPDATE martlet_control SET capture = 1;
            DROP TABLE clubs;
            """)
        if looks & 1 != 0 { try device.reopen(script: nil) }
        try device.shell("ALTER TABLE other RENAME TO clubs")
        if looks & 2 != 0 { try device.reopen(script: nil) }
        try device.shell("UPDATE clubs SET name = 'C' WHERE id = 3")
        // A program that has the file open opens it again.
        _ = try? device.gather()
        try device.reopen(script: nil)
        #expect(try Self.sent(device) == [Self.text("clubs", 3, "C")])
        try device.shell("UPDATE clubs SET name = 'D' WHERE id = 1")
        #expect(
            try Self.sent(device) == [Self.text("clubs", 3, "C"), Self.text("clubs", 1, "D")])
    }

    @Test("a table made anew beside the old one is refused until one is gone", arguments: 0..<4)
    func replacedTableBesideOld(looks: Int) throws {
        let device = try Self.device()
        try device.shell(
            """
            UPDATE teams SET name = 'A' WHERE id = 1;
            UPDATE teams SET name = 'B' WHERE id = 2;
            ALTER TABLE teams RENAME TO old;
            CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT);
            INSERT INTO teams SELECT * FROM old WHERE id <> 2;
            """)
        let error = #expect(throws: StoreError.self) { try device.gather() }
        #expect(error?.kind == .newer)
        if looks & 1 != 0 {
            #expect(Self.refusal(device)?.message.contains("“teams” the name “old”") == true)
        }
        guard looks & 2 == 0 else {
            try device.shell("DROP TABLE players; DROP TABLE old")
            try device.reopen(script: nil)
            // That a copy lacks a record does not mean that a person deleted it.
            #expect(try Self.sent(device) == [Self.text("teams", 1, "A")])
            return
        }
        try device.shell("UPDATE old SET name = 'C' WHERE id = 3")
        try device.shell("DROP TABLE teams; ALTER TABLE old RENAME TO teams")
        try device.reopen(script: nil)
        #expect(
            try Self.sent(device) == [
                Self.text("teams", 1, "A"), Self.text("teams", 2, "B"), Self.text("teams", 3, "C"),
            ])
        #expect(try device.store.awaitingTableCount == 0)
    }

    /// A device whose table is away, and whose new record −2 got the key 7 meanwhile.
    private static func numberedAway() throws -> DeviceFixture {
        let device = try Self.device()
        try device.write { try $0.insert("teams", ["name": "Rooks"]) }
        let own = try #require(try device.gather().changeSets.first?.identifier)
        try device.shell(Self.away)
        try device.reopen(script: nil)
        try device.apply(
            [.entry(2, own: own, .created("teams", 7, old: -2, at: 2, ["name": "Rooks"]))],
            reaching: 2)
        return device
    }

    @Test("a record that got its key while its table was away has it when the table is back")
    func numbered() throws {
        let device = try Self.numberedAway()
        try device.shell("UPDATE elsewhere SET name = 'A' WHERE id = -2;" + Self.back)
        try device.reopen(script: nil)
        #expect(
            try device.rows("SELECT id, name FROM teams ORDER BY id")
                == [[1, "Owls"], [2, "Owls"], [3, "Owls"], [7, "A"]])
        let entry = try #require(try device.gather().changeSets.first?.types.first?.entries.first)
        #expect(entry.id == .integer(7) && entry.revision == 2)
        #expect(entry.attributes == ["name": "A"])
        #expect(try device.store.keptAside().isEmpty)
        #expect(try device.store.contradiction() == nil)
    }

    @Test("a record that got its key while its table was away, and was deleted then, is deleted")
    func numberedAndDeleted() throws {
        let device = try Self.numberedAway()
        try device.shell("DELETE FROM elsewhere WHERE id = -2;" + Self.back)
        try device.reopen(script: nil)
        #expect(
            try device.rows("SELECT id, name FROM teams ORDER BY id")
                == [[1, "Owls"], [2, "Owls"], [3, "Owls"]])
        let sets = try device.gather().changeSets
        #expect(sets.first?.types.map(\.delete) == [[.integer(7)]])
        #expect(sets.first?.types.first?.entries.map(\.revision) == [2])
        #expect(try device.store.keptAside().isEmpty)
        #expect(try device.store.contradiction() == nil)
    }

    @Test("if all tables were away, they have what the server said meanwhile when they are back")
    func allAway() throws {
        let device = try Self.device()
        try device.write { try $0.insert("teams", ["name": "Rooks"]) }
        let own = try #require(try device.gather().changeSets.first?.identifier)
        let tables = ["teams", "clubs", "players"]
        for table in tables { try device.shell("ALTER TABLE \(table) RENAME TO x\(table)") }
        try device.reopen(script: nil)
        try device.apply(
            [
                .entry(2, own: own, .created("teams", 7, old: -2, at: 2, ["name": "Rooks"])),
                .entry(3, .updated("clubs", 2, at: 3, ["name": "Kites"])),
            ], reaching: 3)
        for table in tables { try device.shell("ALTER TABLE x\(table) RENAME TO \(table)") }
        try device.reopen(script: nil)
        #expect(
            try device.rows("SELECT id, name FROM teams ORDER BY id")
                == [[1, "Owls"], [2, "Owls"], [3, "Owls"], [7, "Rooks"]])
        #expect(try device.rows("SELECT name FROM clubs WHERE id = 2") == [["Kites"]])
        #expect(try device.store.keptAside().isEmpty)
        #expect(try device.store.contradiction() == nil)
    }

    @Test("an edit that refers to a new record whose table is away is withheld until it is back")
    func parent() throws {
        let device = try Self.device()
        try device.shell(
            """
            INSERT INTO teams(id, name) SELECT id, 'Rooks' FROM martlet_new_id;
            INSERT INTO players(id, name, team_id) SELECT id, 'Ann', -2 FROM martlet_new_id;
            INSERT INTO players(id, name, team_id) SELECT id, 'Bea', 1 FROM martlet_new_id;
            """ + Self.away)
        try device.reopen(script: nil)
        #expect(try Self.sent(device) == [Self.text("players", -4, "Bea")])
        #expect(try device.store.withheld().map(\.id) == [.integer(-3)])
        try device.shell("UPDATE players SET name = 'Ada' WHERE id = -3")
        #expect(try Self.sent(device).count == 1)
        try device.shell(Self.back)
        try device.reopen(script: nil)
        #expect(try device.store.withheld().isEmpty)
        let sets = try device.gather().changeSets
        try #require(sets.count == 2)
        #expect(sets[1].types.map(\.name) == ["teams", "players"])
        #expect(sets[1].types[1].entries[0].attributes["name"] == .text("Ada"))
        #expect(try device.store.contradiction() == nil)
    }
}
