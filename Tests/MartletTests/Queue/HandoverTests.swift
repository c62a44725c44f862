import MartletModel
import MartletProtocol
import MartletStore
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// Tests saves whose records hand unique values on to each other, while others change other
/// records.
@Suite("Unique values handed on")
struct HandoverTests {
    private static let script = """
        CREATE TABLE teams(id INTEGER PRIMARY KEY, name TEXT, code TEXT NOT NULL UNIQUE);
        CREATE TABLE labels(id TEXT PRIMARY KEY, label TEXT UNIQUE, colour TEXT);
        """

    /// Makes a device with teams 1 to 3, which have the codes a to c, and others.
    private static func device() throws -> DeviceFixture {
        let device = try DeviceFixture(script: script)
        try device.apply(
            [
                .entry(
                    1, .created("teams", 1, at: 1, ["code": "a"]),
                    .created("teams", 2, at: 1, ["code": "b"]),
                    .created("teams", 3, at: 1, ["code": "c"]),
                    .created("teams", 8, at: 1, ["code": "y"])),
                .entry(2, .created("teams", 9, at: 2, ["code": "z"])),
            ], reaching: 2)
        return device
    }

    enum Deed: String, CaseIterable {
        case swap, cycle, replacement, move, orReplace, chain

        func run(_ context: WriteContext) throws {
            func code(_ id: Int64, _ code: String) throws {
                try context.update("teams", .integer(id), ["code": .text(code)])
            }
            switch self {
            case .swap: for (id, to) in [(1, "?"), (2, "a"), (1, "b")] { try code(Int64(id), to) }
            case .cycle:
                for (id, to) in [(1, "?"), (3, "a"), (2, "c"), (1, "b")] { try code(Int64(id), to) }
            case .replacement:
                try context.delete("teams", .integer(3))
                try context.insert("teams", ["code": "c", "name": "new"])
            case .move:
                try code(2, "freed")
                try code(1, "b")
            case .orReplace:
                _ = try context.rows(
                    """
                    INSERT OR REPLACE INTO teams(id, code, name)
                    SELECT id, 'b', 'replaced' FROM martlet_new_id
                    """)
            case .chain:
                // A record that stays takes the code of a deleted one, and a new record takes its
                // code.
                try context.delete("teams", .integer(1))
                try code(2, "a")
                try context.insert("teams", ["code": "b"])
            }
        }
    }

    @Test(
        "a save that nobody else's change touches stays queued, whatever is deleted meanwhile",
        arguments: Deed.allCases)
    func queued(deed: Deed) throws {
        let device = try Self.device()
        try device.write(deed.run)
        let shown = try device.rows("SELECT id, code, name FROM teams WHERE id < 9 ORDER BY id")
        // A delete moves every waiting set.
        var deletion = TypeChanges(name: "teams", delete: [.integer(9)])
        deletion.entries = []
        try device.apply([.entry(3, deletion)], reaching: 3)
        #expect(try device.store.parked().map(\.message) == [])
        let now = try device.rows("SELECT id, code, name FROM teams ORDER BY id")
        #expect(now == shown)
        #expect(try device.gather().changeSets.count == 1)
    }

    @Test(
        "a refused save is put up again as it was, whatever order its records are kept in",
        arguments: Deed.allCases)
    func retried(deed: Deed) throws {
        let device = try Self.device()
        try device.write(deed.run)
        let shown = try device.rows("SELECT id, code, name FROM teams ORDER BY id")
        let set = try device.gather().changeSets[0]
        try device.apply([.refusal(set.identifier ?? "", .permission)], reaching: 2)
        #expect(try device.rows("SELECT count(*) FROM teams WHERE code = 'a' AND id = 1") == [[1]])
        try device.store.retry(set.identifier ?? "", now: 3_000)
        #expect(try device.rows("SELECT id, code, name FROM teams ORDER BY id") == shown)
        #expect(try device.store.parkedCount == 0)
        #expect(try device.gather().changeSets[0].types[0] == set.types[0])
    }

    @Test("a value that someone else took is refused all the same, and nothing of the save stays")
    func takenUniqueValue() throws {
        let device = try Self.device()
        try device.write(Deed.swap.run)
        try device.write { context in
            try context.update("teams", .integer(3), ["code": "d"])
            try context.update("teams", .integer(8), ["code": "c"])
        }
        try device.apply(
            [.entry(3, .created("teams", 10, at: 3, ["code": "d"]))], reaching: 3)
        #expect(try device.store.parked().map(\.reason) == [.constraint])
        #expect(
            try device.rows("SELECT id, code FROM teams ORDER BY id")
                == [[1, "b"], [2, "a"], [3, "c"], [8, "y"], [9, "z"], [10, "d"]])
        #expect(try device.rows("SELECT id FROM martlet_base ORDER BY id") == [[1], [2]])
    }

    @Test("text keys that take each other's labels")
    func labels() throws {
        let device = try Self.device()
        try device.write { context in
            try context.insert("labels", ["label": "one", "colour": "red"], id: "x")
            try context.insert("labels", ["label": "two"], id: "y")
        }
        try device.write { context in
            try context.delete("labels", .text("x"))
            try context.update("labels", .text("y"), ["label": "one"])
            try context.insert("labels", ["label": "two"], id: "z")
        }
        try device.write { context in
            try context.delete("labels", .text("y"))
            try context.insert("labels", ["label": "one", "colour": "blue"], id: "x")
        }
        try device.apply(
            [.entry(3, TypeChanges(name: "teams", delete: [.integer(9)]))], reaching: 3)
        #expect(try device.store.parkedCount == 0)
        #expect(
            try device.rows("SELECT id, label, colour FROM labels ORDER BY id")
                == [["x", "one", "blue"], ["z", "two", .null]])
    }
}
