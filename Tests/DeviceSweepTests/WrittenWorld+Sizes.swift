import MartletProtocol
import MartletStore
import MartletTesting
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet

/// What another program writes that is more than fits.
extension WrittenWorld {
    /// Another program writes more in one transaction than a set holds, children before their parents.
    func writeMany() throws {
        let pairs = schema.tables.flatMap { child in
            child.columns.compactMap { column in
                column.target.map { (child, column, schema.tables[$0]) }
            }
        }
        guard let (child, column, parent) = pairs.first(where: { $0.0.name != $0.2.name }) else {
            return
        }
        func rows(_ table: RandomTable, _ more: String) -> String {
            let key = Self.manyKey(table)
            let names = table.quotedKey + (more.isEmpty ? "" : ", \(column.quoted)")
            return """
                WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < 2999)
                INSERT OR IGNORE INTO \(table.quoted)(\(names)) SELECT \(key)\(more) FROM c
                """
        }
        try exchange()
        let connection = try device.connection()
        try connection.execute(
            """
            PRAGMA foreign_keys = OFF;
            CREATE TEMP TABLE first AS SELECT id FROM martlet_new_id;
            BEGIN; \(rows(child, ", " + Self.manyKey(parent))); \(rows(parent, "")); COMMIT
            """)
        history.append("-- many rows of \(child.name), then of \(parent.name)")
        let broken = try connection.prepare("PRAGMA foreign_key_check").rows { _ in 0 }
        guard broken.isEmpty else { return isLoose = true }
        try sync()
        let parked = try device.store.parked().map { "\($0.reason) \($0.message)" }
        #expect(parked.isEmpty, "a large transaction was cut across what needs what: \(story)")
        tally["many", default: 0] += 1
    }

    /// The keys of many rows; those of both tables are known before they are there.
    private static func manyKey(_ table: RandomTable) -> String {
        table.isText ? "'many' || i" : "(SELECT id FROM first) - i"
    }

    /// Another program writes a value, or a row, that is too large to be sent. It is withheld, and stops
    /// nothing. A key that is too large is refused.
    func writeLong() throws {
        let texts = schema.tables.flatMap { table in
            table.columns.filter { $0.kind == .text && $0.target == nil }.map { (table, $0) }
        }
        guard let (table, column) = texts.randomElement(using: &random) else { return }
        try exchange()
        let bytes = random.one(of: [Limits.textBytes + 1, Limits.savedSetBytes + 1])
        let key = table.isText ? "'long'" : "(SELECT id FROM martlet_new_id)"
        let connection = try device.connection()
        try connection.execute(
            """
            PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON;
            INSERT OR IGNORE INTO \(table.quoted)(\(table.quotedKey), \(column.quoted))
            VALUES (\(key), printf('%.*c', \(bytes), 'x'))
            """)
        guard try connection.integer("SELECT changes()") == 1 else { return }
        history.append("-- a text of \(bytes) bytes in \(table.name).\(column.name)")
        try sync()
        let parked = try device.store.parked().map { "\($0.reason) \($0.message)" }
        #expect(parked.isEmpty, "\(story)")
        let withheld = try device.store.withheld()
        #expect(withheld.count == 1, "\(withheld.map(\.message)) \(story)")
        for record in withheld { try giveUp { try device.store.drop(record) } }
        tally["long", default: 0] += 1
        guard table.isText else { return }
        let error = #expect(throws: SQLiteError.self, "\(story)") {
            try connection.execute(
                """
                INSERT INTO \(table.quoted)(\(table.quotedKey))
                VALUES (printf('%.*c', \(Limits.textBytes + 1), 'x'))
                """)
        }
        #expect(error?.message.hasPrefix("martlet:") == true, "\(story)")
    }
}
