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

    /// Another program writes a transaction of statements of all kinds, whose rows are so large that it has to be
    /// cut. All of it arrives.
    func writeBulk() throws {
        let large = schema.tables.compactMap { table in
            let columns = table.columns.filter {
                [.text, .untyped, .blob].contains($0.kind) && $0.target == nil
            }
            return columns.randomElement(using: &random).map { (table, $0) }
        }
        guard !large.isEmpty else { return }
        try exchange()
        guard try device.store.quarantined().isEmpty else { return }
        let connection = try device.connection()
        var bulk = RandomStatements(schema, seed: random.next(), mark: "bulk", sendable: true)
        try connection.execute("PRAGMA foreign_keys = \(random.chance(50) ? "ON" : "OFF"); BEGIN")
        for _ in 0..<Int.random(in: 20...50, using: &random) {
            let statement = random.chance(30) ? bulk.rotation() : bulk.statement()
            do {
                try connection.execute(statement)
                history.append(statement)
            } catch {
                let isJudged = error.isConstraint || error.code == 20
                #expect(
                    isJudged || error.message.hasPrefix("martlet:"), "\(error.message) \(story)")
            }
            if !connection.isInTransaction { try connection.execute("BEGIN") }
            guard let (table, column) = large.randomElement(using: &random) else { continue }
            let bytes = random.one(of: [1, 300_000, 700_000])
            let offset = Int.random(in: 0..<6, using: &random)
            try? connection.execute(
                """
                UPDATE OR IGNORE \(table.quoted)
                SET \(column.quoted) = \(table.quotedKey) || printf('%.*c', \(bytes), 'x')
                WHERE \(table.quotedKey) IN (
                    SELECT \(table.quotedKey) FROM \(table.quoted) LIMIT 2 OFFSET \(offset))
                """)
        }
        do {
            try connection.execute("COMMIT")
        } catch {
            return try connection.execute("ROLLBACK")
        }
        let broken = try connection.prepare("PRAGMA foreign_key_check").rows { _ in 0 }
        guard broken.isEmpty else { return isLoose = true }
        let written = try rows(connection)
        try sync()
        let parked = try device.store.parked().map { "\($0.reason) \($0.message)" }
        // schema.md: what such an index forbids to move needs two saves.
        let isOfIndex =
            parked.contains { $0.contains("failed: index") } || schema.script.contains(" WHERE ")
        #expect(
            parked.isEmpty || isOfIndex, "a large transaction was cut amiss: \(parked) \(story)")
        guard parked.isEmpty, try device.store.withheldCount == 0 else { return }
        let served = try rows(world.server.connection())
        let sizes = (written.mapValues(\.count), served.mapValues(\.count))
        #expect(sizes.0 == sizes.1, "rows are lost: \(sizes) \(story)")
        tally["bulk", default: 0] += 1
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
