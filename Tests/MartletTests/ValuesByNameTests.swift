import MartletModel
internal import MartletProtocol
import MartletStore
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// Tests that a context writes and reads a record by the name of its type as a table does.
@Suite("Values by name")
struct ValuesByNameTests {
    private static let script = """
        CREATE TABLE things(
            id INTEGER PRIMARY KEY, n INTEGER, r REAL, t TEXT, b BLOB, f BOOLEAN, d NUMERIC, a,
            g INTEGER AS (n * 2), other INTEGER REFERENCES things(id));
        CREATE TABLE notes(id TEXT PRIMARY KEY COLLATE NOCASE, body TEXT);
        """
    private let things = PlainTable("things")
    private let notes = PlainTable("notes")

    /// Values that do not fit, each with the name of its column and words of the refusal.
    private static let misfits: [(name: String, value: SQLValue, words: String)] = [
        ("n", "5", "things.n holds integers, and was given text; convert it"),
        ("n", .real(1.5), "was given a real number"), ("n", .blob([1]), "given binary data"),
        ("r", .real(.infinity), "things.r cannot be sent: expected a finite number"),
        ("r", .real(.nan), "expected a finite number"), ("r", "1.5", "holds numbers"),
        ("t", "a\u{0}b", "expected text without NUL"), ("t", 1, "holds text"),
        ("b", "QUJD", "holds binary data, and was given text"), ("f", 2, "holds 0 or 1"),
        ("d", "1e3", "holds decimal numbers"), ("d", "1234567890.1234567", "decimal numbers"),
        ("a", .blob([1]), "things.a cannot be sent: expected a number or text"),
    ]

    private func refusal(
        _ device: DeviceFixture, _ body: (WriteContext) throws -> Void
    ) throws -> StoreError {
        try #require(throws: StoreError.self) { try device.write(body) }
    }

    @Test("what is written is what is read, of every kind")
    func kinds() throws {
        let device = try DeviceFixture(script: Self.script)
        let values: RecordValues = [
            "n": 7, "r": 1.5, "t": "seven \(7)", "b": .blob([0, 1, 255]), "f": true, "d": "-12.5",
            "a": .null,
        ]
        try device.write { context in
            let first = try context.insert("things", values)
            let second = try context.insert("things", ["other": first.sqlValue])
            var read = try #require(try context.record("things", first))
            #expect(read.names == ["n", "r", "t", "b", "f", "d", "a", "g", "other"])
            #expect(read["g"] == 14 && read["d"] == -12.5 && read["other"] == .some(.null))
            for name in ["n", "r", "t", "b", "f", "a"] { #expect(read[name] == values[name]) }
            read["g"] = nil
            #expect(try context.update("things", second, read))
            read["n"] = 8
            #expect(try context.update("things", second, ["n": 8]))
            let changed = try #require(try context.record("things", second))
            for name in read.names { #expect(changed[name] == read[name]) }
        }
        let sent = try device.gather().changeSets[0].types[0].entries[0].attributes
        #expect(
            sent == [
                "n": 7, "r": 1.5, "t": "seven 7", "b": "AAH/", "f": true, "d": "-12.5",
            ])
    }

    @Test(
        "a value that does not fit is refused in the words in which a table refuses it",
        arguments: Self.misfits)
    func refused(name: String, value: SQLValue, words: String) throws {
        let device = try DeviceFixture(script: Self.script)
        let id = try device.write { try $0.insert("things", ["t": "x"]) }
        let bad = RecordValues(names: [name], values: [value])
        let withKey = RecordValues(names: ["id", name], values: [id.sqlValue, value])
        let refusals = [
            try refusal(device) { try $0.insert("things", bad) },
            try refusal(device) { try $0.update("things", id, bad) },
            try refusal(device) { try things.insert(bad, in: $0) },
            try refusal(device) { try things.update(withKey, in: $0) },
        ]
        for error in refusals {
            #expect(error.kind == .value)
            #expect(error.message == refusals[0].message)
            #expect(error.message.contains(words), "\(error.message)")
        }
        #expect(try device.store.outboxCount == 1)
    }

    @Test("a name that is no attribute is refused, and so are the key and computed columns")
    func names() throws {
        let device = try DeviceFixture(script: Self.script)
        let id = try device.write { try $0.insert("things", ["t": "x"]) }
        let cases: [(name: String, kind: StoreError.Kind, words: String)] = [
            ("x", .unknown, "has no column “x”; it has id, n, r"), ("T", .unknown, "no column “T”"),
            ("g", .misuse, "“g” is computed by the database"),
            ("id", .misuse, "“id” is the key of “things”"),
        ]
        for (name, kind, words) in cases {
            let bad = RecordValues(names: [name], values: [3])
            for error in [
                try refusal(device) { try $0.insert("things", bad) },
                try refusal(device) { try $0.update("things", id, bad) },
            ] {
                #expect(error.kind == kind)
                #expect(error.message.contains(words), "\(error.message)")
            }
        }
        for error in [
            try refusal(device) { try $0.insert("nothing", ["n": 1]) },
            try refusal(device) { try $0.update("sqlite_schema", id, ["n": 1]) },
            try refusal(device) { _ = try $0.record("Things", id) },
        ] {
            #expect(error.kind == .unknown)
        }
        #expect(try device.store.outboxCount == 1)
    }

    @Test("a key is given for texts alone, and must be one that the server takes")
    func keys() throws {
        let device = try DeviceFixture(script: Self.script)
        for error in [
            try refusal(device) { try $0.insert("things", ["t": "x"], id: "7") },
            try refusal(device) { try $0.insert("notes", ["body": "x"], id: "") },
            try refusal(device) { try $0.insert("notes", ["body": "x"], id: "a\u{0}") },
            try refusal(device) { try notes.insert(["id": ""] as RecordValues, in: $0) },
        ] {
            #expect(error.kind == .value)
            #expect(error.message.hasPrefix("The key of “"), "\(error.message)")
        }
        #expect(try device.store.outboxCount == 0)
    }

    @Test("a text key is found by its bytes, by name and through a table")
    func textKeys() throws {
        let device = try DeviceFixture(script: Self.script)
        try device.write { context in
            try context.insert("notes", ["body": "mine"], id: "A")
            let other: RecordValues = ["id": "a", "body": "other"]
            #expect(try !context.update("notes", .text("a"), ["body": "other"]))
            #expect(try !notes.update(other, in: context))
            #expect(try !notes.delete("a", in: context))
            #expect(try !context.delete("notes", .text("a")))
            #expect(try notes.find("a", in: context) == nil)
            #expect(try context.record("notes", .text("a")) == nil)
            #expect(try context.record("notes", .text("A")) == ["body": "mine"])
            #expect(try notes.update(["id": "A", "body": "new"] as RecordValues, in: context))
            #expect(try notes.find("A", in: context)?["body"] == "new")
        }
    }

    @Test("a refused edit is shown in the values in which it can be made again")
    func parked() throws {
        let device = try DeviceFixture(script: Self.script)
        try device.apply(
            [.entry(1, .created("things", 5, at: 1, ["b": "AA==", "f": false]))], reaching: 1)
        try device.write {
            try $0.update("things", .integer(5), ["b": .blob([0, 1, 255]), "f": true])
        }
        let sent = try device.gather().changeSets[0]
        try device.apply([.refusal(sent.identifier ?? "", .stale)], reaching: 1)
        let change = try #require(try device.store.parked().first?.changes.first)
        #expect(change.base == ["b": .blob([0]), "f": 0])
        #expect(change.mine == ["b": .blob([0, 1, 255]), "f": 1])
        #expect(change.theirs == ["b": .blob([0]), "f": 0])
        let mine = try #require(change.mine)
        try device.write { try $0.update(change.type, change.id, mine) }
        let again = try device.gather().changeSets.last
        #expect(again?.types[0].entries[0].attributes == ["b": "AAH/", "f": true])
    }

    @Test("a value of the wire becomes what a column of its kind stores")
    func conversion() {
        let attributes: Attributes = [
            "b": "AAH/", "odd": "AB==", "t": "AAH/", "f": true, "n": 1, "r": 1.5, "x": .null,
        ]
        let kinds: [(String, AttributeKind)] = [
            ("b", .blob), ("odd", .blob), ("t", .text), ("f", .boolean), ("n", .integer),
            ("r", .real), ("x", .any),
        ]
        let type = EntityType(
            name: "things", key: "id", keyKind: .integer,
            attributes: kinds.map { Attribute(name: $0.0, kind: $0.1) })
        #expect(
            RecordValues(attributes, of: type) == [
                "b": .blob([0, 1, 255]), "odd": "AB==", "t": "AAH/", "f": 1, "n": 1, "r": 1.5,
                "x": .null,
            ])
        #expect(RecordValues(attributes, of: nil)["b"] == "AAH/")
    }
}
