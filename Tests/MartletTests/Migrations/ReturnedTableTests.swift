import MartletModel
import MartletProtocol
import MartletStore
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// Tests a table that another program takes away from a device's file and brings back.
@Suite("Tables that come back")
struct ReturnedTableTests {
    private static let script = """
        CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT, code TEXT UNIQUE);
        CREATE TABLE notes(id TEXT PRIMARY KEY, body TEXT)
        """
    private static let away = "ALTER TABLE teams RENAME TO elsewhere"
    private static let back = "ALTER TABLE elsewhere RENAME TO teams"

    /// Teams 1, 2 and 3.
    private static func device() throws -> DeviceFixture {
        let device = try DeviceFixture(script: script)
        try device.apply(
            [
                .entry(
                    1, .created("teams", 1, at: 1, ["name": "Owls", "code": "a"]),
                    .created("teams", 2, at: 1, ["name": "Jays", "code": "b"]),
                    .created("teams", 3, at: 1, ["name": "Larks"]))
            ], reaching: 1)
        return device
    }

    /// Others hand a unique value on, delete a team, and make one.
    /// - Parameter byDifference: Whether the records arrive whole.
    private static func change(_ device: DeviceFixture, byDifference: Bool = false) throws {
        guard !byDifference else {
            _ = try device.gather()
            let whole: [(Int64, Revision, Attributes)] = [
                (1, 3, ["name": "Kites", "code": "b"]),
                (2, 2, ["name": "Jays", "code": "c"]),
                (4, 5, ["name": "Crows"]),
            ]
            let teams = TypeChanges(
                name: "teams", update: whole.map { .integer($0.0) }, delete: [.integer(3)],
                entries: whole.map {
                    RecordEntry(id: .integer($0.0), revision: $0.1, attributes: $0.2)
                })
            try device.apply([DeviceFixture.difference(5, teams)], reaching: 5)
            return
        }
        try device.apply(
            [
                .entry(2, .updated("teams", 2, at: 2, ["code": "c"])),
                .entry(3, .updated("teams", 1, at: 3, ["code": "b", "name": "Kites"])),
                .entry(4, TypeChanges(name: "teams", delete: [.integer(3)])),
                .entry(5, .created("teams", 4, at: 5, ["name": "Crows"])),
            ], reaching: 5)
    }

    private static func teams(_ device: DeviceFixture) throws -> [[SQLValue]] {
        try device.rows("SELECT id, name, code FROM teams ORDER BY id")
    }

    @Test(
        "one that is renamed away and back gets what the server said meanwhile",
        arguments: [false, true])
    func renamedTableAndBack(byDifference: Bool) throws {
        let device = try Self.device()
        try device.shell(Self.away)
        try device.reopen(script: nil)
        try Self.change(device, byDifference: byDifference)
        try device.shell(Self.back)
        try device.reopen(script: nil)
        #expect(
            try Self.teams(device) == [[1, "Kites", "b"], [2, "Jays", "c"], [4, "Crows", .null]])
        #expect(try device.store.keptAside().isEmpty)
        #expect(
            try device.rows("SELECT id, revision FROM martlet_records ORDER BY id")
                == [[1, 3], [2, 2], [4, 5]])
        try device.write { try $0.update("teams", .integer(1), ["name": "Terns"]) }
        #expect(try device.gather().changeSets.last?.types[0].entries[0].revision == 3)
        #expect(try device.store.contradiction() == nil)
    }

    @Test("one that is made again gets whole records only", arguments: [false, true])
    func madeAgain(byDifference: Bool) throws {
        let device = try Self.device()
        try device.shell("DROP TABLE teams")
        try device.reopen(script: nil)
        try Self.change(device, byDifference: byDifference)
        try device.shell("CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT, code TEXT UNIQUE)")
        try device.reopen(script: nil)
        let had: [[SQLValue]] = byDifference ? [[1, "Kites", "b"], [2, "Jays", "c"]] : []
        #expect(try Self.teams(device) == had + [[4, "Crows", .null]])
        #expect(try device.store.keptAside().isEmpty)
    }

    @Test("edits of its records stay on top, and are judged by what they were made on")
    func edited() throws {
        let device = try Self.device()
        try device.write { try $0.update("teams", .integer(1), ["name": "Wrens"]) }
        try device.shell(
            "INSERT INTO teams(id, name) VALUES (-2, 'Rooks');"
                + "UPDATE teams SET name = 'Hens' WHERE id = 3;" + Self.away)
        try device.reopen(script: nil)
        // What was noted waits for the table, also if another note is taken.
        #expect(try device.store.awaitingTableCount == 2)
        try device.shell("INSERT INTO notes VALUES ('n', 'x')")
        #expect(try device.gather().changeSets.count == 2)
        #expect(try device.store.awaitingTableCount == 2)
        try Self.change(device)
        try device.shell(Self.back)
        try device.reopen(script: nil)
        // The set with the edit of a record that is gone is parked whole.
        #expect(
            try Self.teams(device) == [[1, "Wrens", "b"], [2, "Jays", "c"], [4, "Crows", .null]])
        let sets = try device.gather().changeSets
        try #require(sets.count == 2)
        #expect(sets[0].types[0].entries[0].revision == 1)
        #expect(try device.store.parkedCount == 1)
        // The server refuses the edit, and the confirmed record shows.
        try device.apply([.refusal(sets[0].identifier ?? "", .stale)], reaching: 5)
        #expect(try Self.teams(device).contains([1, "Kites", "b"]))
        #expect(try device.rows("SELECT revision FROM martlet_records WHERE revision < 0").isEmpty)
        #expect(try device.store.contradiction() == nil)
    }

    @Test("edits that were refused while their table was away are undone when it is back")
    func refusedWhileTableAway() throws {
        let device = try Self.device()
        try device.write {
            try $0.insert("teams", ["name": "Rooks"])
            try $0.update("teams", .integer(1), ["name": "Wrens"])
            try $0.delete("teams", .integer(3))
        }
        let own = try #require(try device.gather().changeSets.first?.identifier)
        try device.shell(Self.away)
        try device.reopen(script: nil)
        try device.apply([.refusal(own, .stale)], reaching: 1)
        try device.shell(Self.back)
        try device.reopen(script: nil)
        #expect(
            try Self.teams(device) == [[1, "Owls", "a"], [2, "Jays", "b"], [3, "Larks", .null]])
        #expect(try device.store.keptAside().isEmpty)
        #expect(try device.gather().changeSets.isEmpty)
        #expect(try device.store.parkedCount == 1)
        #expect(try device.store.contradiction() == nil)
    }

    @Test("if both sides made a record with one key, the server's shows once the own is refused")
    func madeTwice() throws {
        let device = try Self.device()
        try device.shell("ALTER TABLE notes RENAME TO elsewhere")
        try device.shell("INSERT INTO elsewhere VALUES ('n', 'own')")
        try device.reopen(script: nil)
        let other = TypeChanges(
            name: "notes", create: [.text("n")],
            entries: [
                RecordEntry(id: .text("n"), revision: 2, attributes: ["body": "other"])
            ])
        try device.apply([.entry(2, other)], reaching: 2)
        try device.shell("ALTER TABLE elsewhere RENAME TO notes")
        try device.reopen(script: nil)
        if let own = try device.gather().changeSets.first?.identifier {
            try device.apply([.refusal(own, .stale)], reaching: 2)
        }
        #expect(try device.rows("SELECT body FROM notes") == [["other"]])
        #expect(try device.store.parkedCount == 1)
        #expect(try device.store.keptAside().isEmpty)
        #expect(try device.store.contradiction() == nil)
    }

    @Test("records that went with a dropped table are not deleted for others", arguments: 0..<4)
    func dropped(looks: Int) throws {
        let device = try Self.device()
        // No set can carry this text.
        try device.shell("UPDATE teams SET name = CAST(x'ff' AS TEXT) WHERE id = 2")
        try device.reopen(script: nil)
        #expect(try device.store.withheldCount == 1)
        try device.shell("DROP TABLE teams")
        if looks & 1 != 0 { try device.reopen(script: nil) }
        try device.shell("CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT, code TEXT UNIQUE)")
        // The app that has the file open makes the triggers again.
        if looks & 2 != 0 { _ = try? device.gather() }
        try device.reopen(script: nil)
        let isKnown = try device.rows("SELECT id FROM martlet_records")
        #expect(try device.gather().changeSets.isEmpty)
        #expect(try device.store.withheldCount == 0)
        // A check finds that they are missing, and not that somebody deleted them.
        #expect(isKnown.isEmpty)
    }

    @Test("a withheld new record that was deleted before its table was dropped is told to nobody")
    func deletedBefore() throws {
        let device = try Self.device()
        try device.shell("INSERT INTO teams(id, name) VALUES (-2, CAST(x'ff' AS TEXT))")
        try device.reopen(script: nil)
        #expect(try device.store.withheldCount == 1)
        try device.shell(
            """
            DELETE FROM teams WHERE id = -2; DROP TABLE teams;
            CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT, code TEXT UNIQUE);
            """)
        try device.reopen(script: nil)
        #expect(try device.gather().changeSets.isEmpty)
        #expect(try device.store.withheldCount == 0)
        #expect(try device.store.contradiction() == nil)
    }

    @Test("a check that has begun does not take the triggers of a table that comes back")
    func checked() throws {
        let device = try Self.device()
        try device.shell(Self.away)
        try device.reopen(script: nil)
        try device.shell(Self.back)
        #expect(try !device.store.restoreCapture())
        try device.shell("UPDATE teams SET name = 'Hens' WHERE id = 1")
        try device.reopen(script: nil)
        #expect(try Self.queued(device) == ["teams Hens"])
    }

    private static let writes =
        "INSERT INTO %(id, name) SELECT id, 'Rooks' FROM martlet_new_id;"
        + "UPDATE % SET name = 'Hens' WHERE id = 3; DELETE FROM % WHERE id = 2;"

    /// The names of what is queued, and how much waits for a table.
    private static func queued(_ device: DeviceFixture) throws -> [String] {
        try device.gather().changeSets.flatMap { set in
            set.types.flatMap { type in
                type.entries.compactMap { entry -> String? in
                    guard case .text(let name) = entry.attributes["name"] else { return nil }
                    return "\(type.name) \(name)"
                } + type.delete.map { "\(type.name) -\($0)" }
            }
        }.sorted() + (device.store.awaitingTableCount == 0 ? [] : ["waiting"])
    }

    @Test(
        "what is written before the next look is sent, whichever of its names the table had",
        arguments: [[0], [1], [2], [0, 2], [1, 3], [0, 1, 2, 3]])
    func writtenBeforeRename(moments: [Int]) throws {
        let device = try Self.device()
        // Each part of the writes comes once, at one of the moments.
        let parts = Self.writes.split(separator: ";").map(String.init)
        func write(at moment: Int, to table: String) throws {
            for (number, part) in parts.enumerated() where moments[number % moments.count] == moment
            {
                try device.shell(part.replacing("%", with: table))
            }
        }
        try write(at: 0, to: "teams")
        try device.shell(Self.away)
        try write(at: 1, to: "elsewhere")
        try device.reopen(script: nil)
        let isWaiting = moments.contains(0) || moments.contains(1)
        #expect(try Self.queued(device) == (isWaiting ? ["waiting"] : []))
        try device.shell(Self.back)
        try write(at: 2, to: "teams")
        // And once more, with a name between.
        try device.reopen(script: nil)
        try device.shell(Self.away)
        try device.reopen(script: nil)
        try device.shell("ALTER TABLE elsewhere RENAME TO third")
        try device.reopen(script: nil)
        try device.shell("ALTER TABLE third RENAME TO teams")
        try write(at: 3, to: "teams")
        try device.reopen(script: nil)
        let queued = try Self.queued(device)
        #expect(queued == ["teams -2", "teams Hens", "teams Rooks"])
        #expect(try device.store.contradiction() == nil)
    }

    @Test(
        "a new record takes the id that the server gave it meanwhile, whatever a trigger says",
        arguments: [
            "BEFORE UPDATE ON teams BEGIN SELECT RAISE(IGNORE); END",
            "BEFORE UPDATE ON teams BEGIN SELECT RAISE(ABORT, 'not so'); END",
            "AFTER UPDATE ON teams BEGIN UPDATE notes SET body = 'touched'; END",
        ])
    func triggered(effect: String) throws {
        let device = try Self.device()
        let note = TypeChanges(
            name: "notes", create: [.text("n")],
            entries: [RecordEntry(id: .text("n"), attributes: ["body": "first"])])
        try device.apply([.entry(2, note)], reaching: 2)
        try device.shell("INSERT INTO teams(id, name) VALUES (-2, 'Rooks')")
        let identifier = try device.gather().changeSets.first?.identifier
        try device.shell("CREATE TRIGGER others \(effect); \(Self.away)")
        try device.reopen(script: nil)
        try device.apply(
            [.entry(3, own: identifier, .created("teams", 4, old: -2, at: 3, ["name": "Rooks"]))],
            reaching: 3)
        try device.shell(Self.back)
        try device.reopen(script: nil)
        #expect(
            try device.rows("SELECT id, name FROM teams WHERE name = 'Rooks'") == [[4, "Rooks"]])
        #expect(try device.rows("SELECT body FROM notes") == [["first"]])
        #expect(try Self.queued(device).isEmpty)
        #expect(try device.store.contradiction() == nil)
    }

    @Test("another process that kept the file open opens it again, and nothing is passed over")
    func twoProcesses() throws {
        let device = try Self.device()
        let other = try DeviceStore(path: device.path, script: nil, randomBits: { 7 })
        try device.shell(Self.away)
        try device.reopen(script: nil)
        try Self.change(device)
        try device.shell(Self.back)
        let error = #expect(throws: StoreError.self) {
            try other.write(now: 1) { try $0.update("notes", .text("n"), ["body": "y"]) }
        }
        #expect(error?.kind == .newer)
        try device.reopen(script: nil)
        #expect(try Self.teams(device).count == 3)
    }
}
