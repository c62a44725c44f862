import Foundation
import MartletModel
import MartletProtocol
import MartletStore
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

/// Runs statements of other programs in every spelling against a model that looks at the tables
/// alone. Every visible difference must be in a change set, and undoing the set must restore the
/// tables.
@Suite("What other programs write, against the tables")
struct CaptureModelTests {
    private typealias Rows = [RecordID: [SQLValue]]

    /// A table of three records, with one spelling of its key and one of a unique index.
    struct Shape: CustomTestStringConvertible, Sendable {
        let key: String
        let index: String
        var isText = true

        var testDescription: String { "\(key); \(index)" }

        var script: String {
            let parts = key.split(separator: "|", omittingEmptySubsequences: false)
            return """
                CREATE TABLE things(\(parts[0]), code TEXT, n INTEGER,
                    folded TEXT AS (lower(code)), kept TEXT AS (lower(code) || '.') STORED
                    \(parts.count > 1 ? parts[1] : "")) \(parts.count > 2 ? parts[2] : "");
                \(index);
                """
        }

        func sql(_ statement: String) -> String {
            var sql = statement
            let keys = isText ? ["'a'", "'b'", "'c'", "'new'"] : ["1", "2", "3", Self.newID]
            for (name, key) in zip(["{1}", "{2}", "{3}", "{new}"], keys) {
                sql = sql.replacing(name, with: key)
            }
            return sql
        }

        private static let newID = "(SELECT id FROM martlet_new_id)"

        static let all =
            [
                "CREATE UNIQUE INDEX u ON things(code)",
                "CREATE UNIQUE INDEX u ON things(lower(code))",
                "CREATE UNIQUE INDEX u ON things(code COLLATE NOCASE, n)",
                "CREATE UNIQUE INDEX u ON things(code || '-' || ifnull(n, 0))",
                "CREATE UNIQUE INDEX u ON things(code) WHERE n > 0",
                "CREATE UNIQUE INDEX u ON things(folded)",
                "CREATE UNIQUE INDEX u ON things(kept, n)",
                "CREATE UNIQUE INDEX u ON things(upper(code) COLLATE NOCASE DESC)"
                    + " WHERE n > 0 AND \"code\" IS NOT NULL; CREATE UNIQUE INDEX v ON things(n, id)",
            ].map { Shape(key: "id INTEGER PRIMARY KEY", index: $0, isText: false) }
            + [
                ("id TEXT PRIMARY KEY", "CREATE UNIQUE INDEX u ON things(id COLLATE NOCASE)"),
                ("id TEXT PRIMARY KEY", "CREATE UNIQUE INDEX u ON things(lower(id), n)"),
                ("id TEXT PRIMARY KEY", "CREATE UNIQUE INDEX u ON things(lower(code))"),
                ("id TEXT PRIMARY KEY COLLATE NOCASE", "CREATE UNIQUE INDEX u ON things(code)"),
                ("id TEXT|, PRIMARY KEY (id COLLATE NOCASE)", "CREATE INDEX u ON things(code)"),
                ("id TEXT PRIMARY KEY||WITHOUT ROWID", "CREATE UNIQUE INDEX u ON things(folded)"),
                ("id TEXT PRIMARY KEY, rowid TEXT, oid", "CREATE UNIQUE INDEX u ON things(code)"),
            ].map { Shape(key: $0.0, index: $0.1) }
    }

    private static let statements = [
        "INSERT OR REPLACE INTO things(id, code, n) VALUES ({new}, 'Y', 1)",
        "INSERT OR REPLACE INTO things(id, code, n) VALUES ({new}, 'y', 1)",
        "REPLACE INTO things(id, code, n) VALUES ({1}, 'Y', 1)",
        "REPLACE INTO things(id, code, n) VALUES ({1}, 'x', 5)",
        "REPLACE INTO things(id, code, n) VALUES (upper({1}), 'z', 5)",
        "INSERT OR IGNORE INTO things(id, code, n) VALUES ({new}, 'Y', 1)",
        "INSERT OR FAIL INTO things(id, code, n) VALUES ({new}, 'v', 1), ({1}, 'w', 1)",
        "INSERT OR ROLLBACK INTO things(id, code, n) VALUES ({new}, 'Y', 1)",
        "INSERT OR REPLACE INTO things(rowid, id, code) VALUES (2, {new}, 'w')",
        "INSERT OR REPLACE INTO things(_rowid_, id, code) VALUES (2, {new}, 'w')",
        "INSERT INTO things(id, code, n) VALUES ({1}, 'k', 9) ON CONFLICT DO UPDATE SET n = 9",
        "INSERT INTO things(code, n) VALUES ('q', 1)",
        "UPDATE OR REPLACE things SET code = 'Y' WHERE id = {1}",
        "UPDATE OR REPLACE things SET code = 'y' WHERE id = {1}",
        "UPDATE OR REPLACE things SET code = 'Y', n = 1 WHERE id IN ({1}, {3})",
        "UPDATE OR REPLACE things SET code = 'y', n = 7",
        "UPDATE OR IGNORE things SET code = 'y'",
        "UPDATE OR FAIL things SET code = 'y'",
        "UPDATE things SET code = upper(code)",
        "UPDATE things SET n = 0, code = 'x' WHERE id = {2};"
            + " UPDATE OR REPLACE things SET n = 1 WHERE id = {2}",
        "UPDATE things SET id = {new} WHERE id = {1}",
        "UPDATE OR REPLACE things SET id = {2} WHERE id = {1}",
        "UPDATE OR REPLACE things SET id = upper(id) WHERE id = {1}",
        "UPDATE things SET rowid = 99 WHERE id = {1}",
        "UPDATE things SET oid = 99 WHERE id = {1}",
        "UPDATE OR REPLACE things SET _rowid_ = 2 WHERE id = {1}",
        "UPDATE OR REPLACE things SET rowid = 2, code = 'r' WHERE id = {1}",
        "BEGIN; DELETE FROM things WHERE id = {1};"
            + " INSERT INTO things(id, code, n) VALUES ({1}, 'again', 1); COMMIT",
        "WITH one AS (SELECT {1} AS key) DELETE FROM things WHERE id IN (SELECT key FROM one)",
        "/* all */ DELETE FROM things",
    ]

    /// Makes a device with the records that the server has confirmed.
    private func device(_ shape: Shape) throws -> DeviceFixture {
        let device = try DeviceFixture(script: shape.script)
        let keys: [RecordID] =
            shape.isText ? ["a", "b", "c"].map(RecordID.text) : [1, 2, 3].map(RecordID.integer)
        let entries = zip(keys, ["x", "y", "z"]).map { key, code in
            RecordEntry(
                id: key, revision: 1, attributes: ["code": .text(code), "n": 1])
        }
        try device.apply(
            [.entry(1, TypeChanges(name: "things", create: keys, entries: entries))], reaching: 1)
        return device
    }

    private func rows(_ device: DeviceFixture) throws -> Rows {
        var rows: Rows = [:]
        for row in try device.rows("SELECT id, code, n FROM things") {
            guard let id = RecordID(Value(row[0])) else { continue }
            rows[id] = Array(row.dropFirst())
        }
        return rows
    }

    /// Applies the sets that would be sent to the rows.
    private func applied(_ sets: [ChangeSet], to rows: Rows) -> Rows {
        var rows = rows
        for types in sets.flatMap(\.types) {
            for id in types.delete { rows[id] = nil }
            for entry in types.entries where !types.delete.contains(entry.id) {
                var row = rows[entry.id] ?? [.null, .null]
                for (position, name) in ["code", "n"].enumerated() {
                    if let value = entry.attributes[name] {
                        row[position] = SQLValue(value, kind: .any)
                    }
                }
                rows[entry.id] = row
            }
        }
        return rows
    }

    @Test("is captured under each key and each index, or refused", arguments: Shape.all)
    func everySpelling(_ shape: Shape) throws {
        let device = try device(shape)
        let before = try rows(device)
        #expect(before.count == 3)
        var accepted = 0
        for recursive in ["OFF", "ON"] {
            for statement in Self.statements {
                let sql = shape.sql(statement)
                let isDone: Bool
                do {
                    try device.shell("PRAGMA recursive_triggers = \(recursive); \(sql)")
                    isDone = true
                } catch is SQLiteError {
                    isDone = false
                }
                let after = try rows(device)
                let sets = try device.gather().changeSets
                #expect(
                    applied(sets, to: before) == after,
                    "recursive_triggers \(recursive): \(sql): \(sets)")
                if isDone, after != before { accepted += 1 }
                try device.apply(
                    sets.map { .refusal($0.identifier ?? "", .permission) }, reaching: 1)
                let back = try rows(device)
                #expect(back == before, "taken back, \(recursive): \(sql)")
                guard back == before else { return }
            }
        }
        #expect(accepted > 20)
    }
}

extension Value {
    fileprivate init(_ value: SQLValue) {
        switch value {
        case .integer(let number): self = .integer(number)
        case .text(let text): self = .text(text)
        default: self = .null
        }
    }
}
