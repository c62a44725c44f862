import MartletModel
import MartletProtocol
import MartletStore
import MartletTesting
import SQLiteKit
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

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

    /// Another program writes a row of about so many bytes as one of the limits allows. If it is too large to be sent,
    /// it is withheld, and stops nothing. A key that is too large is refused.
    func writeLong() throws {
        let tables = schema.tables.filter { table in
            table.columns.contains { $0.kind == .text && $0.target == nil }
        }
        guard let table = tables.randomElement(using: &random) else { return }
        let columns = table.columns.filter { $0.kind == .text && $0.target == nil }
            .shuffled(using: &random).prefix(Int.random(in: 1...2, using: &random))
        try exchange()
        let bytes = random.one(of: [
            Limits.savedSetBytes - 50_000, Limits.savedSetBytes + 1, Limits.textBytes - 1,
            Limits.textBytes + 1, Limits.rowBytes + 1,
        ])
        let isSendable = bytes < Limits.savedSetBytes
        let key = table.isText ? "'long'" : "(SELECT id FROM martlet_new_id)"
        let names = columns.map { ", \($0.quoted)" }.joined()
        let values = String(
            repeating: ", printf('%.*c', \(bytes / columns.count + 1), 'x')", count: columns.count)
        let connection = try device.connection()
        try connection.execute(
            """
            PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON;
            INSERT OR IGNORE INTO \(table.quoted)(\(table.quotedKey)\(names)) VALUES (\(key)\(values))
            """)
        guard try connection.integer("SELECT changes()") == 1 else { return }
        history.append("-- texts of \(bytes) bytes in \(columns.count) columns of \(table.name)")
        try sync()
        let parked = try device.store.parked().map { "\($0.reason) \($0.message)" }
        // A computed column may hold the text once more, and is part of what devices are sent.
        let isComputed = table.script.contains(" AS (")
        let isUnfit = parked.contains {
            $0.contains("CHECK") || isComputed && $0.contains("more than 24 MiB")
        }
        #expect(parked.isEmpty || isSendable && isUnfit, "\(parked) \(story)")
        #expect(try device.store.outboxCount == 0, "the queue is stopped: \(story)")
        let withheld = try device.store.withheld()
        #expect(withheld.count == (isSendable ? 0 : 1), "\(withheld.map(\.message)) \(story)")
        for record in withheld { try giveUp { try device.store.drop(record) } }
        for set in try device.store.parked() {
            try device.store.drop(set.identifier, now: 1_000)
        }
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

    /// Another program hands unique values on among more records than a set holds: in circles and in chains of many
    /// lengths. All of it arrives.
    func handOnMany() throws {
        guard let (table, column) = try uniqueColumn() else { return }
        try exchange()
        let count = 5_200
        let first = table.isText ? "" : "CREATE TEMP TABLE first AS SELECT id FROM martlet_new_id;"
        let value =
            switch column.kind {
            case .integer: "1000 + i"
            case .real: "1000.5 + i"
            case .blob: "CAST('v' || i AS BLOB)"
            default: "'v' || i"
            }
        let program = try device.connection()
        func isWhole() throws -> Bool {
            try program.prepare("PRAGMA foreign_key_check").rows { _ in 0 }.isEmpty
        }
        try program.execute(
            """
            PRAGMA foreign_keys = OFF; \(first)
            WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < \(count - 1))
            INSERT OR IGNORE INTO \(table.quoted)(\(table.quotedKey), \(column.quoted))
            SELECT \(Self.manyKey(table)), \(value) FROM c
            """)
        history.append("-- \(count) rows of \(table.name).\(column.name)")
        guard try isWhole() else { return isLoose = true }
        try sync()
        guard try device.store.parkedCount == 0, try device.store.withheldCount == 0,
            try device.store.quarantined().isEmpty
        else { return }
        // Neighbours in an order of chance make the circles; the first of some gets another value.
        let length = random.one(of: [2, 3, 50, 700])
        let seed = Int.random(in: 1..<1_000, using: &random)
        let breaks = random.chance(50)
        try program.execute(
            """
            CREATE TEMP TABLE handed AS SELECT row_number() OVER (
                ORDER BY (rowid * 7919 + \(seed)) % 10007, k) - 1 AS number, k, v
            FROM (SELECT \(table.quotedKey) AS k, \(column.quoted) AS v FROM \(table.quoted)
                WHERE \(column.quoted) IS NOT NULL);
            CREATE INDEX temp.numbers ON handed(number); CREATE INDEX temp.keys ON handed(k);
            BEGIN;
            UPDATE \(table.quoted) SET \(column.quoted) = NULL WHERE \(table.quotedKey) IN (SELECT k FROM handed);
            UPDATE \(table.quoted) SET \(column.quoted) = (
                SELECT next.v FROM handed AS own JOIN handed AS next ON next.number =
                    iif(own.number % \(length) = \(length - 1), own.number - \(length - 1), own.number + 1)
                WHERE own.k = \(table.quoted).\(table.quotedKey)
                    AND NOT (\(breaks) AND own.number % (3 * \(length)) = 0))
            WHERE \(table.quotedKey) IN (SELECT k FROM handed);
            COMMIT
            """)
        history.append(
            "-- handed on in circles of \(length)\(breaks ? ", some of them chains" : "")")
        func values() throws -> [String: String] {
            try rows(program)[table.name, default: [:]].compactMapValues { row in
                table.columns.firstIndex { $0.name == column.name }.map { row[$0] }
            }
        }
        let written = try values()
        try sync()
        let parked = try device.store.parked().map { "\($0.reason) \($0.message)" }
        #expect(parked.isEmpty, "values were handed on, and cut amiss: \(parked) \(story)")
        #expect(try values() == written, "\(story)")
        let (shown, served) = try (rows(program), rows(world.server.connection()))
        #expect(shown[table.name] == served[table.name], "\(story)")
        tally["handed on", default: 0] += 1
    }

    /// A column with unique values that may be null, if a table has one, and all its other columns have values to
    /// begin with.
    private func uniqueColumn() throws -> (RandomTable, RandomColumn)? {
        let program = try device.connection()
        let found = try schema.tables.flatMap { table in
            try table.columns.filter { column in
                guard column.target == nil, !column.isRequired, column.kind != .boolean else {
                    return false
                }
                let indexes = try program.prepare(
                    """
                    SELECT 1 FROM pragma_index_list(?1) AS list WHERE list."unique" AND NOT list.partial
                        AND (SELECT group_concat(name || coll) FROM pragma_index_xinfo(list.name) WHERE key)
                            = ?2 || 'BINARY'
                    """)
                indexes.bind(1, text: table.name)
                indexes.bind(2, text: column.name)
                return try !indexes.rows { _ in 0 }.isEmpty
                    && !["ON CONFLICT", "ifnull(", " WHERE "].contains { table.script.contains($0) }
            }.map { (table, $0) }
        }
        return found.randomElement(using: &random)
    }
}
