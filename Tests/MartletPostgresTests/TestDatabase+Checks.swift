import MartletModel
import MartletProtocol
import MartletServerCore
import PostgresKit
import SQLiteKit
import SQLiteRecords
import Testing

@testable import MartletPostgres

extension PostgresConnection {
    func count(_ rest: String) throws -> Int64 {
        try query("SELECT count(*) FROM \(rest)").integer(0, 0)
    }

    /// Everything about the tables of users that a dump would show, and their rows' count.
    func tableDescriptions() throws -> [String] {
        let rows = try query(
            """
            SELECT c.oid::regclass::text || ' ' || c.relkind::text || ' ' || (
                SELECT coalesce(string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod),
                    attnotnull, attidentity, attgenerated, pg_get_expr(adbin, adrelid)), ', '
                    ORDER BY attnum), '')
                FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
                WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped)
            || (SELECT coalesce(string_agg(conname || pg_get_constraintdef(oid), ' ' ORDER BY conname), '')
                FROM pg_constraint WHERE conrelid = c.oid)
            || (SELECT coalesce(string_agg(pg_get_triggerdef(oid), ' ' ORDER BY oid), '')
                FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal)
            || (SELECT coalesce(string_agg(pg_get_indexdef(indexrelid), ' ' ORDER BY indexrelid), '')
                FROM pg_index WHERE indrelid = c.oid)
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE n.nspname NOT LIKE 'pg\\_%' AND n.nspname NOT IN ('information_schema', '_martlet')
            UNION ALL
            SELECT p.oid::regprocedure::text FROM pg_proc p WHERE pronamespace = 'public'::regnamespace
            ORDER BY 1
            """)
        return try (0..<rows.count).map { try rows.text($0, 0) }
    }

    /// Plays the log to a device and compares it with the tables, value by value; each entry's
    /// references hold at its end.
    func expectFoldedLog(_ schema: PostgresSchema) throws {
        let device = try Connection(path: ":memory:")
        try device.execute("PRAGMA foreign_keys = ON")
        try device.execute(schema.deviceScript)
        let tables = schema.schema.types.map { RecordTable(type: $0, connection: device) }
        let log = try query("SELECT body, hash, revision FROM _martlet.log ORDER BY revision")
        let dataSet = try query("SELECT identity, revision, hash FROM _martlet.dataset")
        var hash = LineageHash(origin: try dataSet.text(0, 0))
        for row in 0..<log.count {
            let body = try log.binary(row, 0)
            hash = hash.appending(body, identifier: nil)
            #expect(hash.bytes == (try log.binary(row, 1)))
            #expect(try log.integer(row, 2) == Int64(row + 1))
            let set = try SyncCoder.decodeChangeSet(body)
            try device.transaction {
                try device.run("PRAGMA defer_foreign_keys = ON")
                for changes in set.types {
                    let table = tables[schema.schema.index(of: changes.name) ?? 0]
                    for entry in changes.entries where changes.create.contains(entry.id) {
                        try table.insert(entry.id, entry.attributes, absentMeansNull: true)
                    }
                }
            }
        }
        #expect(try dataSet.integer(0, 1) == Int64(log.count))
        #expect(try dataSet.binary(0, 2) == hash.bytes)
        for (table, source) in zip(tables, schema.tables) {
            var count: Int64 = 0
            var wrong: [RecordID] = []
            try TableRows(source, on: self).forEach(unsendable: { throw $1 }) { id, row in
                count += 1
                if try table.read(id) != row { wrong.append(id) }
            }
            #expect(
                try device.integer("SELECT count(*) FROM \(SQLName.quoted(source.name))") == count)
            #expect(try self.count("_martlet.records WHERE type = \(source.number)") == count)
        }
    }

    /// That a device makes of the script what the server says.
    func expectDeviceScript(of schema: PostgresSchema) throws {
        let device = try Connection(path: ":memory:")
        try device.execute(schema.deviceScript)
        #expect(try SchemaReader.read(device).fingerprint == schema.schema.fingerprint)
    }
}
