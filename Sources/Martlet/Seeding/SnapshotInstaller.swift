internal import MartletDevice
internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords
internal import SystemKit

/// Makes a device's file from verified snapshots.
///
/// The file is prepared under another name, with the app's indexes and triggers, flushed to the
/// disk, and then renamed. At every instant the device has no file or the finished one. Calls
/// block.
struct SnapshotInstaller {
    let files: SeedFiles
    let source: SchemaSource
    let options: ClientOptions

    /// Installs a snapshot as the device's file.
    /// - Parameters:
    ///   - snapshot: The path of a verified file.
    ///   - manifest: The manifest that the snapshot is the first part of; nil if it is complete.
    ///     The device fetches the other parts when it exchanges.
    ///   - client: The name of the device; nil for a new one.
    /// - Throws: `StoreError`, `SyncError`, `SystemError`; there is no device's file then.
    func install(
        _ snapshot: String, firstOf manifest: SnapshotManifest? = nil, as client: String? = nil
    ) throws {
        let staged = files.path(files.staged)
        // The staged file of an earlier attempt may be in any state, so it is removed.
        try DatabaseFile.remove(staged)
        let isTaken = try take(snapshot, staged: staged)
        try complete(staged, with: isTaken ? nil : snapshot, firstOf: manifest, as: client)
        let folder = try files.open()
        guard let file = try folder.file(files.staged) else {
            throw StoreError(.inconsistent, "The file made of the snapshot is gone.")
        }
        try file.synchronize()
        // SQLite would take the log of a deleted file for the new file's log.
        try DatabaseFile.remove(files.path(files.name))
        try folder.rename(files.staged, to: files.name)
        try? files.removeAll()
    }

    /// Makes the snapshot's file the staged file if it is suitable.
    /// - Returns: False if its records must be copied instead.
    private func take(_ snapshot: String, staged: String) throws -> Bool {
        // Handlers must receive every row.
        guard case .script(let script) = source, options.models.isEmpty else { return false }
        let description: SnapshotDescription
        do {
            // The reader closes the file before it is renamed.
            let reader = try SnapshotReader(path: snapshot)
            guard try SeededFile.suits(reader, script: script) else { return false }
            description = reader.description
        }
        try files.open().rename(files.nameInFolder(snapshot), to: files.staged)
        try SeededFile.adopt(staged, description)
        return true
    }

    /// Opens the staged file as the app would, which creates missing tables, and copies the
    /// records.
    private func complete(
        _ staged: String, with snapshot: String?, firstOf manifest: SnapshotManifest?,
        as client: String?
    ) throws {
        let (store, outcome) = try source.open(
            path: staged, options: options, generation: SchemaGeneration(), client: client)
        if let failure = outcome?.failure { throw failure }
        store.registry = options.models
        if let snapshot { try store.begin(with: snapshot, now: options.now()) }
        if let manifest { try store.beginWaiting(for: manifest) }
        // Moves the log into the file, because only the file is renamed.
        let checkpoint = try store.applying.connection.statement("PRAGMA wal_checkpoint(TRUNCATE)")
        defer { checkpoint.reset() }
        guard try checkpoint.step(), checkpoint.integer(0) == 0 else {
            throw StoreError(.busy, "Another process has opened the unfinished file; try again.")
        }
    }
}
