import Foundation
import MartletModel
import MartletProtocol
import MartletStore
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("Keys of new records")
struct NewKeyTests {
    private func refusal(_ sql: String, on device: DeviceFixture) -> String? {
        do {
            try device.shell(sql)
            return nil
        } catch {
            return (error as? SQLiteError)?.message ?? "\(error)"
        }
    }

    @Test("a key that SQLite chose is refused where a table has only new records")
    func chosen() throws {
        let device = try DeviceFixture()
        for name in ["a", "b", "c"] {
            try device.write { try $0.insert("teams", ["name": .text(name)]) }
        }
        try device.write { try $0.delete("teams", .integer(-2)) }
        let said = refusal("INSERT INTO teams(name) VALUES ('x')", on: device)
        #expect(said?.contains("martlet_new_id") == true)
        // Several keys in one statement, in another order, are no such keys.
        try device.shell(
            """
            WITH new(name) AS (VALUES ('m'), ('k'), ('l'))
            INSERT INTO teams(id, name)
                SELECT (SELECT id FROM martlet_new_id) + 1 - row_number() OVER (ORDER BY name), name
                FROM new ORDER BY name DESC
            """)
        #expect(try device.rows("SELECT min(id), max(id), count(*) FROM teams") == [[-7, -3, 5]])
        #expect(try device.gather().changeSets.last?.types[0].create.count == 3)
    }

    @Test("an own record that is still there can be replaced under its temporary key")
    func replacedTemporaryKey() throws {
        let device = try DeviceFixture()
        try device.write { try $0.insert("teams", ["name": "a"]) }
        try device.shell("REPLACE INTO teams(id, name) VALUES (-2, 'b')")
        #expect(try device.rows("SELECT name FROM teams") == [["b"]])
        let sets = try device.gather().changeSets
        #expect(sets.last?.types[0].update == [.integer(-2)])
    }

    @Test(
        "a deleted record is not put back under its key in a later save",
        arguments: [5, -2])
    func putBack(key: Int64) throws {
        let device = try DeviceFixture()
        if key > 0 {
            try device.apply(
                [.entry(1, .created("teams", key, at: 1, ["name": "a"]))], reaching: 1)
        } else {
            try device.write { try $0.insert("teams", ["name": "a"]) }
        }
        try device.shell(
            """
            BEGIN; DELETE FROM teams WHERE id = \(key);
            INSERT INTO teams(id, name) VALUES (\(key), 'b'); COMMIT
            """)
        try device.write { try $0.delete("teams", .integer(key)) }
        let said = refusal("INSERT INTO teams(id, name) VALUES (\(key), 'c')", on: device)
        #expect(said?.contains("was deleted") == true)
        #expect(throws: StoreError.self) {
            try device.write {
                try $0.rows("INSERT INTO teams(id, name) VALUES (?, 'c')", [.integer(key)])
            }
        }
        #expect(try device.rows("SELECT count(*) FROM teams") == [[0]])
    }

    @Test(
        "a key far from the next one is refused",
        arguments: [Int64.min, Int64.min + 1, -(Int64(1) << 40)])
    func farAway(key: Int64) throws {
        let device = try DeviceFixture()
        let said = refusal("INSERT INTO teams(id, name) VALUES (\(key), 'x')", on: device)
        #expect(said?.contains("martlet_new_id") == true)
        #expect(try device.write { try $0.insert("teams", ["name": "a"]) } == .integer(-2))
    }

    @Test(
        "a file in which such a key was noted opens, and gives keys again",
        arguments: [Int64.min, Int64.min + 1])
    func noted(key: Int64) throws {
        let device = try DeviceFixture()
        // The triggers of an earlier release let it in.
        try device.shell(
            """
            DROP TRIGGER martlet_capture_insert_1;
            INSERT INTO teams(id, name) VALUES (\(key), 'x');
            INSERT INTO martlet_capture(type, operation, id) VALUES (1, 1, \(key))
            """)
        try device.reopen()
        let id = try device.write { try $0.insert("teams", ["name": "a"]) }
        #expect(id == .integer(-2))
        try device.shell(
            "UPDATE martlet_state SET value = \(Int64.min + 1) WHERE name = 'nextTemporaryID';"
                + "DROP TRIGGER martlet_capture_insert_1")
        try device.reopen()
        let next = try device.write { try $0.insert("teams", ["name": "b"]) }
        guard case .integer(let number) = next else { return #expect(Bool(false)) }
        #expect(number < -1 && number > -(Int64(1) << 62))
        #expect(try device.gather().changeSets.count == 3)
    }

    @Test("the next key is found without a look at the notes, however many there are")
    func withoutNotes() throws {
        let device = try DeviceFixture()
        let plan = try device.store.local.rows(
            "EXPLAIN QUERY PLAN SELECT id FROM martlet_new_id"
        ).map { "\($0.values.last ?? .null)" }.joined(separator: "\n")
        #expect(plan.contains("martlet_state") && !plan.contains("martlet_capture"))
        try device.shell(
            """
            INSERT INTO notes(id, body) VALUES ('zz', 'x');
            INSERT INTO teams(id, name) SELECT id, 'a' FROM martlet_new_id;
            UPDATE teams SET name = 'b';
            INSERT INTO teams(id, name) SELECT id, 'c' FROM martlet_new_id
            """)
        #expect(try device.rows("SELECT id FROM teams ORDER BY id") == [[-3], [-2]])
    }

    @Test("a key of text that the server would refuse is refused when it is written")
    func textKeysRefusedByServer() throws {
        let device = try DeviceFixture()
        let said = refusal("INSERT INTO notes(id) VALUES ('a' || char(0) || 'b')", on: device)
        #expect(said?.contains("without NUL") == true)
        let error = #expect(throws: StoreError.self) {
            try device.write { try $0.insert("notes", ["body": "x"], id: "a\u{0}b") }
        }
        #expect(error?.kind == .value)
        #expect(try device.store.outboxCount == 0)
    }

    @Test("a text too long for the wire is refused when it is written, whichever way")
    func longTexts() throws {
        let device = try DeviceFixture()
        let long = String(repeating: "x", count: Limits.textBytes + 1)
        let calls: [(WriteContext) throws -> Void] = [
            { try $0.insert("notes", ["body": .text(long)]) },
            { try $0.insert("notes", ["body": .text(long)]) },
            { try $0.rows("INSERT INTO notes(id, body) VALUES ('a', ?)", [.text(long)]) },
            {
                try $0.insert("notes", ["body": "x"], id: "b")
                try $0.update("notes", .text("b"), ["body": .text(long)])
            },
        ]
        for call in calls {
            let error = #expect(throws: StoreError.self) { try device.write(call) }
            #expect(error?.kind == .value || error?.kind == .tooLarge)
        }
        #expect(try device.rows("SELECT count(*) FROM notes") == [[0]])
    }

    @Test(
        "a text key that is not UTF-8 is refused",
        arguments: [
            "ff61", "80", "61c3", "c328", "e282", "e083a9", "f4908080", "eda080", "c0af",
            "f7bfbfbf",
        ])
    func notUTF8(hex: String) throws {
        let device = try DeviceFixture()
        let insert = "INSERT INTO notes(id) VALUES (CAST(x'\(hex)' AS TEXT))"
        #expect(refusal(insert, on: device)?.contains("in UTF-8") == true)
        // A row that got in while capture was off leaves nothing behind.
        try device.shell(
            "UPDATE martlet_control SET capture = 0; \(insert); UPDATE martlet_control SET capture = 1"
        )
        try device.shell("DELETE FROM notes")
        #expect(try device.gather().changeSets.isEmpty)
        #expect(try device.rows("SELECT count(*) FROM martlet_capture") == [[0]])
    }

    @Test(
        "every text in UTF-8 is a key",
        arguments: ["é", "日本 a", "😀", "\u{80}", "\u{fffd}", "\u{fffe}", "\u{ffff}", "\u{10ffff}"])
    func isUTF8(key: String) throws {
        let device = try DeviceFixture()
        try device.shell("INSERT INTO notes(id) VALUES ('\(key)')")
        #expect(try device.gather().changeSets.first?.types[0].create == [.text(key)])
    }
}
