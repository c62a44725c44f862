internal import MartletDevice
internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords
internal import SystemKit

/// Makes a device's file of verified snapshots.
///
/// The file is made ready under another name, with the app's indexes and triggers, brought to the
/// disk, and then renamed: at every instant the device has no file or the finished one. Calls block.
struct SnapshotInstaller {
    let files: SeedFiles
    let source: SchemaSource
    let options: ClientOptions

    /// - Parameters:
    ///   - snapshot: The path of a verified file.
    ///   - manifest: What it is the first part of; nil where it is all there is. The other parts come
    ///     when the device exchanges.
    /// - Throws: `StoreError`, `SyncError`, `SystemError`; there is then no device's file.
    func install(_ snapshot: String, firstOf manifest: SnapshotManifest? = nil) throws {
        let staged = files.path(files.staged)
        // What an earlier try has left is not gone on with: it may be anything.
        try DatabaseFile.remove(staged)
        let isTaken = try take(snapshot, staged: staged)
        try complete(staged, with: isTaken ? nil : snapshot, firstOf: manifest)
        let folder = try files.open()
        guard let file = try folder.file(files.staged) else {
            throw StoreError(.inconsistent, "The file made of the snapshot is gone.")
        }
        try file.synchronize()
        // A log left of a file that was deleted here would be taken for the new one's.
        try DatabaseFile.remove(files.path(files.name))
        try folder.rename(files.staged, to: files.name)
        try? files.removeAll()
    }

    /// Makes the file of a snapshot the device's where it suits.
    /// - Returns: False where its records are to be copied.
    private func take(_ snapshot: String, staged: String) throws -> Bool {
        // Handlers are to hear of every row.
        guard case .script(let script) = source, options.models.isEmpty else { return false }
        let description: SnapshotDescription
        do {
            // The reader lets go of the file before it is renamed.
            let reader = try SnapshotReader(path: snapshot)
            guard try SeededFile.suits(reader, script: script) else { return false }
            description = reader.description
        }
        try files.open().rename(files.nameInFolder(snapshot), to: files.staged)
        try SeededFile.adopt(staged, description)
        return true
    }

    /// Opens the staged file as the app would, which makes what is missing in it, and copies records.
    private func complete(
        _ staged: String, with snapshot: String?, firstOf manifest: SnapshotManifest?
    ) throws {
        let (store, outcome) = try source.open(
            path: staged, options: options, generation: SchemaGeneration())
        if let failure = outcome?.failure { throw failure }
        store.registry = options.models
        if let snapshot { try store.begin(with: snapshot, now: options.now()) }
        if let manifest { try store.beginWaiting(for: manifest) }
        // Back into the file, which alone is renamed.
        let checkpoint = try store.applying.connection.statement("PRAGMA wal_checkpoint(TRUNCATE)")
        defer { checkpoint.reset() }
        guard try checkpoint.step(), checkpoint.integer(0) == 0 else {
            throw StoreError(.busy, "Another process has opened the unfinished file; try again.")
        }
    }
}
