import Foundation
import MartletModel
import MartletProtocol
import MartletStore
import SmallWorlds
import Synchronization
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("Declarations that change what a conflict or an equal key means")
struct ConflictClauseTests {
    private static func swap(_ device: DeviceFixture) throws {
        try device.apply(
            [
                .entry(1, .created("tags", 1, at: 1, ["code": "a"])),
                .entry(2, .created("tags", 2, at: 2, ["code": "b"])),
            ], reaching: 2)
        let set = ChangeSet.entry(
            3,
            TypeChanges(
                name: "tags", update: [.integer(1), .integer(2)],
                entries: [
                    RecordEntry(
                        id: .integer(1), revision: 3, attributes: ["code": "b"]),
                    RecordEntry(
                        id: .integer(2), revision: 3, attributes: ["code": "a"]),
                ]))
        try device.apply([set], reaching: 3)
    }

    @Test(
        "remote change that swaps unique values comes in, whatever the constraint's clause",
        arguments: ["ROLLBACK", "IGNORE", "REPLACE", "FAIL", "ABORT"])
    func swappedWithConflictClause(clause: String) throws {
        let device = try DeviceFixture(
            script:
                "CREATE TABLE tags(id INTEGER PRIMARY KEY, code TEXT UNIQUE ON CONFLICT \(clause))")
        try Self.swap(device)
        #expect(try device.rows("SELECT id, code FROM tags ORDER BY id") == [[1, "b"], [2, "a"]])
        #expect(try device.store.revision == 3)
        // The clause is meant for the app's own writes.
        let error: (any Error)?
        do {
            try device.write { try $0.insert("tags", ["code": "a"]) }
            error = nil
        } catch let thrown {
            error = thrown
        }
        #expect((error == nil) == ["IGNORE", "REPLACE"].contains(clause))
        let set = try device.gather().changeSets.first
        #expect(set?.types[0].delete == (clause == "REPLACE" ? [.integer(2)] : nil))
    }

    @Test("what SQLite passes over is told to the caller, and to no hook")
    func passedOverIsToldToCaller() throws {
        let device = try DeviceFixture(
            script: "CREATE TABLE tags(id INTEGER PRIMARY KEY, code TEXT UNIQUE ON CONFLICT IGNORE)"
        )
        try Self.swap(device)
        let told = Mutex<[String]>([])
        var hooks = WriteHooks()
        hooks.after([.insert, .update]) { write, _ in
            told.withLock { $0.append("\(write.operation) \(write.key.map { "\($0)" } ?? "")") }
        }
        let store = try DeviceStore(
            path: device.path, script: nil, hooks: hooks, randomBits: { 7 })
        try store.write(now: 1) { context throws in
            #expect(try context.insert("tags", ["code": "a"]) == .integer(0))
            #expect(try !context.update("tags", .integer(1), ["code": "a"]))
            #expect(try context.update("tags", .integer(1), ["code": "c"]))
            #expect(try !context.update("tags", .integer(9), ["code": "d"]))
        }
        #expect(told.withLock { $0 } == ["update 1"])
        #expect(try store.outboxCount == 1)
    }

    @Test(
        "an update that would push out the row to which it refers is refused, and breaks no index",
        arguments: ["SET NULL", "SET DEFAULT"], ["UPDATE", "UPDATE OR REPLACE"])
    func pushesOut(action: String, verb: String) throws {
        let clause = verb == "UPDATE" ? "ON CONFLICT REPLACE" : ""
        let device = try DeviceFixture(
            script: """
                CREATE TABLE tags(id INTEGER PRIMARY KEY, code TEXT UNIQUE \(clause),
                    next INTEGER REFERENCES tags ON DELETE \(action));
                CREATE INDEX tags_next ON tags(next)
                """)
        try device.apply(
            [
                .entry(1, .created("tags", 1, at: 1, ["code": "a"])),
                .entry(2, .created("tags", 2, at: 2, ["code": "b", "next": 1])),
                .entry(3, .created("tags", 3, at: 3, ["code": "c"])),
            ], reaching: 3)
        let update = "PRAGMA foreign_keys = ON; \(verb) tags SET code = 'a' WHERE id = 2"
        #expect(throws: (any Error).self) { try device.shell(update) }
        #expect(try device.rows("PRAGMA integrity_check") == [["ok"]])
        #expect(
            try device.rows("SELECT id, next FROM tags ORDER BY id") == [
                [1, .null], [2, 1], [3, .null],
            ])
        // Another row that is in the way goes.
        try device.shell("PRAGMA foreign_keys = ON; \(verb) tags SET code = 'c' WHERE id = 2")
        #expect(try device.rows("SELECT id, next FROM tags ORDER BY id") == [[1, .null], [2, 1]])
    }

    @Test(
        "a row that REPLACE removes is deleted for others, too, if it changed on its way out",
        arguments: [
            "",
            "CREATE TRIGGER x BEFORE INSERT ON tags BEGIN UPDATE tags SET n = 9 WHERE code = NEW.code; END",
        ])
    func changedOnItsWayOut(trigger: String) throws {
        let device = try DeviceFixture(
            script: """
                CREATE TABLE tags(id INTEGER PRIMARY KEY, n INTEGER, code TEXT UNIQUE,
                    next INTEGER REFERENCES tags ON DELETE SET NULL);
                \(trigger)
                """)
        try device.apply(
            [
                .entry(1, .created("tags", 1, at: 1, ["code": "a"])),
                .entry(2, .created("tags", 2, at: 2, ["code": "b", "next": 1])),
            ], reaching: 2)
        try device.shell(
            """
            PRAGMA foreign_keys = ON; BEGIN;
            REPLACE INTO tags(id, code) VALUES (1, 'b'); UPDATE tags SET code = 'c'; COMMIT
            """)
        #expect(try device.gather().changeSets.first?.types[0].delete == [.integer(2)])
    }

    @Test("tables may have the names of a trigger's two rows", arguments: ["old", "new"])
    func namesOfRows(name: String) throws {
        let device = try DeviceFixture(
            script: #"CREATE TABLE "\#(name)"(id INTEGER PRIMARY KEY, code TEXT UNIQUE, n INTEGER)"#
        )
        try device.apply(
            [
                .entry(1, .created(name, 1, at: 1, ["code": "a"])),
                .entry(2, .created(name, 2, at: 2, ["code": "b"])),
                .entry(3, .created(name, 3, at: 3, ["code": "c"])),
            ], reaching: 3)
        try device.shell(#"UPDATE OR REPLACE "\#(name)" SET code = 'b' WHERE id = 1"#)
        try device.shell(
            #"INSERT INTO "\#(name)" SELECT id, 'd', 1 FROM martlet_new_id"#)
        #expect(try device.rows("SELECT count(*) FROM martlet_capture")[0][0] == 3)
        let types = try device.gather().changeSets.first?.types
        #expect(types?[0].delete == [.integer(2)])
        #expect(types?[0].update == [.integer(1)])
        #expect(types?[0].create.count == 1)
    }

    @Test("what a generated column computes withholds no record, whatever it is")
    func computed() throws {
        let device = try DeviceFixture(
            script: "CREATE TABLE tags(id INTEGER PRIMARY KEY, b BLOB, lo TEXT AS (lower(b)))")
        try device.shell("INSERT INTO tags(id, b) SELECT id, x'fffe' FROM martlet_new_id")
        #expect(try device.gather().changeSets.first?.types[0].create.count == 1)
        #expect(try device.store.withheldCount == 0)
    }

    @Test("a key that differs in case is another record, and takes no row's place")
    func keysOfAnotherCase() throws {
        let device = try DeviceFixture(
            script: "CREATE TABLE notes(id TEXT PRIMARY KEY COLLATE NOCASE, body TEXT)")
        func entry(_ id: String, _ revision: Revision, _ body: Value) -> ChangeSet {
            .entry(
                revision,
                TypeChanges(
                    name: "notes", create: [.text(id)],
                    entries: [
                        RecordEntry(
                            id: .text(id), revision: revision,
                            attributes: ["body": body])
                    ]))
        }
        try device.apply([entry("A", 1, "mine")], reaching: 1)
        #expect(throws: (any Error).self) {
            try device.apply([entry("a", 2, "other")], reaching: 2)
        }
        #expect(try device.rows("SELECT id, body FROM notes") == [["A", "mine"]])
        // In a difference, the row that does not fit is quarantined.
        var changes = entry("a", 2, "other").types[0]
        (changes.update, changes.create) = (changes.create, [])
        _ = try device.gather()
        try device.apply([DeviceFixture.difference(2, changes)], reaching: 2)
        #expect(try device.rows("SELECT id, body FROM notes") == [["A", "mine"]])
        #expect(try device.store.quarantined().map(\.id) == [.text("a")])
        #expect(try device.write { try $0.update("notes", .text("a"), ["body": "x"]) } == false)
        #expect(try device.write { try $0.delete("notes", .text("a")) } == false)
        #expect(try device.store.local.record("notes", .text("a")) == nil)
    }
}
