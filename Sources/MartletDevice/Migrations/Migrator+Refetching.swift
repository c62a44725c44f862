internal import MartletStore
package import SQLiteKit
internal import SQLiteRecords

extension Migrator {
    /// Creates the newest version's tables, empty, in a device's file whose own tables have been
    /// dropped, and records all versions as run. Queued sets follow the renames of versions that
    /// the file has not seen.
    ///
    /// The versions run on an empty database in memory, as they do for a new file.
    /// - Throws: `StoreError` for a version that cannot even create a new file; `SQLiteError`.
    package func makeTables(on connection: Connection) throws {
        let ledger = MigrationLedger(connection: connection)
        let seen = try ledger.versions()
        let scratch = try Connection(path: ":memory:")
        // Rows that a version inserts here are thrown away; their keys only have to differ.
        try scratch.execute(
            "CREATE VIEW martlet_new_id(id) AS SELECT -1 - abs(random() % 1000000000000)")
        let renames = RenameRecorder()
        for migration in migrations.list {
            renames.isRecording = !seen.contains(migration.version)
            do {
                try run(migration, on: scratch, host: renames)
            } catch {
                throw MigrationFailure.of(error, in: migration)
            }
        }
        try connection.execute(SchemaMigration.ddl(of: scratch))
        let file = DeviceFile(connection: connection)
        let stored = StoredAttributes(connection: connection)
        for rename in renames.list {
            guard let number = try file.number(of: rename.table) else { continue }
            try stored.rename(rename.name, to: rename.new, type: rename.table, number)
        }
        for migration in migrations.list where !seen.contains(migration.version) {
            try ledger.record(migration, now: now)
        }
    }
}

/// Notes the renames of columns.
private final class RenameRecorder: MigrationHost {
    struct Rename {
        let table: String
        let name: String
        let new: String
    }

    private(set) var list: [Rename] = []
    var isRecording = false

    func begin() throws {}
    func willChangeSchema() throws {}
    func willUseRecords() throws {}
    func willDropColumn(_ name: String, from table: String) throws {}
    func willDropTable(_ name: String) throws {}
    func end() throws {}

    func didRenameColumn(_ name: String, to new: String, in table: String) throws {
        if isRecording { list.append(Rename(table: table, name: name, new: new)) }
    }
}
