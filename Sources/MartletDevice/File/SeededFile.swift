internal import MartletModel
package import SQLiteKit
package import SQLiteRecords

/// Turns a snapshot into the file of a device that has received everything up to its revision.
package enum SeededFile {
    /// Creates Martlet's own tables in the file of a snapshot and notes the device's revision, in
    /// one transaction. Indexes and triggers are added when the file is opened with the app's
    /// schema.
    /// - Parameter path: A snapshot that was verified; nothing else has it open.
    /// - Throws: `SQLiteError`; the file is unchanged then.
    package static func adopt(
        _ path: String, vfs: String? = nil, _ description: SnapshotDescription
    ) throws {
        let connection = try Connection(path: path, mode: .readWrite, vfs: vfs)
        try connection.execute("PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL")
        try connection.transaction {
            try connection.execute(DeviceTables.script)
            try connection.execute(DeviceTables.captureTable(width: 0))
            try connection.execute(
                """
                INSERT INTO martlet_state VALUES
                    ('format', \(DeviceTables.format)), ('nextSequence', 1), ('revision', 0),
                    ('nextTemporaryID', \(DeviceTables.firstTemporaryID));
                DROP TABLE martlet_snapshot; PRAGMA application_id = 0;
                """)
            try stand(at: description, on: connection)
        }
    }

    /// Notes that a device's file has received everything up to a snapshot's revision.
    package static func stand(
        at description: SnapshotDescription, on connection: Connection
    ) throws(SQLiteError) {
        let put = try connection.prepare("INSERT OR REPLACE INTO martlet_state VALUES (?1, ?2)")
        put.bind(1, text: "revision")
        put.bind(2, integer: description.revision)
        try put.run()
        for (name, value) in [
            ("lineage", description.lineage), ("dataSet", description.dataSet),
        ] {
            put.bind(1, text: name)
            put.bind(2, text: value)
            try put.run()
        }
    }

    /// Returns whether a snapshot's file can itself become the file of a device with this schema.
    /// The script must only add to its tables, and nothing of the script, such as a trigger or a
    /// full-text index, must have to see each row.
    /// - Parameter script: The app's DDL; nil to take the tables as they are.
    package static func suits(_ reader: SnapshotReader, script: String?) throws -> Bool {
        guard let script else { return true }
        let scratch = try Connection(path: ":memory:")
        do {
            guard
                try SchemaMigration.apply(script: script, to: scratch).fingerprint
                    == reader.schema.fingerprint
            else { return false }
            let watching = try scratch.integer(
                "SELECT 1 FROM sqlite_schema WHERE type = 'trigger' OR sql LIKE 'create virtual%'")
            guard watching == nil else { return false }
            _ = try SchemaPlan(script: script, for: reader.connection)
            return true
        } catch is SchemaError {
            return false
        }
    }
}
