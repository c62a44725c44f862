import Foundation
import MartletModel
import MartletStore
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("What a closure may not do to a client's connection and file")
struct ClosureRefusalTests {
    private func refusal(_ body: () throws -> Void) -> StoreError? {
        do {
            try body()
            return nil
        } catch {
            return error as? StoreError
        }
    }

    private static let statements = [
        "PRAGMA query_only = 1", "PRAGMA foreign_keys = OFF", "PRAGMA main.journal_mode = DELETE",
        "PRAGMA Recursive_Triggers(0)", "PRAGMA wal_checkpoint", "PRAGMA optimize",
        "PRAGMA writable_schema = ON", "ATTACH ':memory:' AS other", "DETACH main",
    ]

    @Test(
        "settings and other databases are refused in both kinds of closure", arguments: statements)
    func settings(sql: String) throws {
        let device = try DeviceFixture()
        for prepares in [false, true] {
            let write = refusal {
                try device.write { context in
                    if prepares {
                        try context.prepare(sql).run()
                    } else {
                        _ = try context.rows(sql)
                    }
                }
            }
            #expect(write?.kind == .misuse, "\(sql)")
            let read = refusal {
                let context = ReadContext(session: device.store.session)
                if prepares {
                    try context.prepare(sql).run()
                } else {
                    _ = try context.rows(sql)
                }
            }
            #expect(read?.kind == .misuse, "\(sql)")
        }
        // The connection is unchanged.
        try device.write { try $0.insert("teams", ["name": "a"]) }
        #expect(try device.store.outboxCount == 1)
    }

    @Test(
        "Martlet's own tables, triggers and views are not written",
        arguments: [
            "UPDATE martlet_control SET capture = 0", "DELETE FROM MARTLET_outbox",
            "INSERT INTO martlet_state VALUES ('x', 1)", "DROP TRIGGER martlet_capture_insert_1",
            "DROP VIEW martlet_new_id", "DROP TABLE martlet_capture",
            "CREATE TABLE martlet_mine(x)",
            "CREATE TRIGGER martlet_capture_x AFTER INSERT ON teams BEGIN SELECT 1; END",
        ])
    func ownTables(sql: String) throws {
        let device = try DeviceFixture()
        #expect(refusal { try device.write { _ = try $0.rows(sql) } }?.kind == .misuse)
        #expect(refusal { try device.write { try $0.prepare(sql).run() } }?.kind == .misuse)
        try device.write { try $0.insert("teams", ["name": "a"]) }
        #expect(try device.store.outboxCount == 1)
    }

    @Test(
        "tables and indexes are changed by the schema, not in a closure",
        arguments: [
            "DROP TABLE teams", "ALTER TABLE teams ADD COLUMN x",
            "CREATE TABLE mine(id TEXT PRIMARY KEY)",
            "ALTER TABLE teams RENAME TO squads", "CREATE UNIQUE INDEX u ON teams(name)",
        ])
    func tables(sql: String) throws {
        let device = try DeviceFixture()
        let error = refusal { try device.write { _ = try $0.rows(sql) } }
        #expect(error?.kind == .misuse && error?.message.contains("migration") == true)
        #expect(try device.rows("SELECT count(*) FROM teams") == [[0]])
    }

    @Test(
        "nothing temporary takes the place of a table for what follows on the connection",
        arguments: [
            "CREATE TEMP TABLE Teams(id INTEGER PRIMARY KEY, name TEXT, city TEXT)",
            "CREATE TEMP VIEW players AS SELECT 1 AS id", "CREATE TEMP TABLE martlet_outbox(x)",
            "CREATE TABLE temp.notes AS SELECT 1",
        ])
    func shadows(sql: String) throws {
        let device = try DeviceFixture()
        #expect(refusal { try device.write { _ = try $0.rows(sql) } }?.kind == .misuse)
        #expect(refusal { try device.write { try $0.prepare(sql).run() } }?.kind == .misuse)
        let read = refusal {
            _ = try ReadContext(session: device.store.session).rows("CREATE TEMP TABLE mine(x)")
        }
        #expect(read?.kind == .misuse)
        try device.write { try $0.insert("teams", ["name": "a"]) }
        #expect(try device.store.outboxCount == 1)
    }

    @Test("what asks, and what is the transaction's or the app's own, is let through")
    func allowed() throws {
        let device = try DeviceFixture()
        try device.write { context in
            for sql in [
                "PRAGMA foreign_keys", "PRAGMA table_info(teams)", "PRAGMA integrity_check(5)",
                "PRAGMA defer_foreign_keys = ON", "PRAGMA user_version = 7",
                "SELECT name FROM pragma_index_list('teams')", "SELECT id FROM martlet_new_id",
                "CREATE TEMP TABLE mine(x)", "INSERT INTO mine VALUES (1)", "DROP TABLE mine",
                "CREATE VIEW names AS SELECT name FROM teams",
                "CREATE VIRTUAL TABLE found USING fts5(words)", "INSERT INTO found VALUES ('a')",
            ] {
                _ = try context.rows(sql)
            }
        }
        #expect(try device.rows("PRAGMA user_version") == [[7]])
    }
}
