internal import MartletModel
package import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

extension LocalStore {
    /// Opens or creates a file, brings its tables to `script`, and sets up capture.
    ///
    /// - Parameters:
    ///   - script: The app's DDL; nil to take the tables as they are in the file.
    ///   - vfs: A registered VFS; nil for the platform's.
    /// - Throws: `StoreError` for a schema or file that cannot be used, `SQLiteError` otherwise.
    package convenience init(
        path: String, script: String?, vfs: String? = nil,
        busyTimeoutMilliseconds: Int32 = 10_000
    ) throws {
        try self.init(
            path: path, script: script, vfs: vfs,
            busyTimeoutMilliseconds: busyTimeoutMilliseconds, sink: nil)
    }

    /// Opens or creates a file, as above.
    /// - Parameter sink: Receives the external writes before the tables change.
    package convenience init(
        path: String, script: String?, vfs: String?, busyTimeoutMilliseconds: Int32 = 10_000,
        sink: (any ChangeSetSink)?
    ) throws {
        let connection = try Connection(
            path: path, vfs: vfs, busyTimeoutMilliseconds: busyTimeoutMilliseconds,
            tracksTables: true)
        try Self.configure(connection)
        let migration = SyncedMigration(connection: connection, sink: sink)
        let (schema, numbers) = try migration.migrate(script: script)
        try connection.execute("PRAGMA foreign_keys = ON")
        self.init(connection: connection, schema: schema, numbers: numbers, keepsClauses: true)
    }

    /// Opens or creates a file, and runs the versions that it has not seen.
    ///
    /// - Parameter sink: Receives the edits that the versions find or make.
    /// - Returns: The store; it can only read if the outcome has a failure.
    /// - Throws: `StoreError`.
    package static func open(
        path: String, migrator: Migrator, fallback: MigrationFallback, vfs: String?,
        sink: any ChangeSetSink
    ) throws -> (LocalStore, MigrationOutcome) {
        do {
            let connection = try Connection(
                path: path, vfs: vfs, busyTimeoutMilliseconds: 10_000, tracksTables: true)
            // This comes first: the file of a newer app must stay as it is, down to its journal
            // mode.
            _ = try migrator.pending(on: connection)
            try configure(connection)
            let migration = SyncedMigration(connection: connection, sink: sink)
            let outcome = try migrator.run(
                on: connection, host: migration, fallback: fallback, vfs: vfs)
            guard outcome.failure == nil else {
                return (try LocalStore(readingFrom: path, vfs: vfs), outcome)
            }
            let (schema, numbers) = try migration.migrate(script: nil)
            try connection.execute("PRAGMA foreign_keys = ON")
            return (
                LocalStore(
                    connection: connection, schema: schema, numbers: numbers, keepsClauses: true),
                outcome
            )
        } catch {
            throw StoreError.of(error)
        }
    }
}
