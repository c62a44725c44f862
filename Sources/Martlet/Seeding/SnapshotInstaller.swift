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

    /// - Parameter snapshots: Paths of verified files, all parts of one snapshot.
    /// - Throws: `StoreError`, `SyncError`, `SystemError`; there is then no device's file.
    func install(_ snapshots: [String]) throws {
        let staged = files.path(files.staged)
        // What an earlier try has left is not gone on with: it may be anything.
        try DatabaseFile.remove(staged)
        let rest = try take(snapshots, staged: staged)
        try complete(staged, with: rest)
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

    /// Takes the file of a snapshot of one part where it suits.
    /// - Returns: The snapshots whose records are still to be copied.
    private func take(_ snapshots: [String], staged: String) throws -> [String] {
        guard case .script(let script) = source, let path = snapshots.first else {
            return snapshots
        }
        let description: SnapshotDescription
        do {
            // The reader lets go of the file before it is renamed.
            let reader = try SnapshotReader(path: path)
            guard try SeededFile.suits(reader, script: script) else { return snapshots }
            description = reader.description
        }
        try files.open().rename(String(path.dropFirst(files.folder.count + 1)), to: files.staged)
        try SeededFile.adopt(staged, description)
        return Array(snapshots.dropFirst())
    }

    /// Opens the staged file as the app would, which makes what is missing in it, and copies records.
    private func complete(_ staged: String, with snapshots: [String]) throws {
        let (store, outcome) = try source.open(
            path: staged, options: options, generation: SchemaGeneration())
        if let failure = outcome?.failure { throw failure }
        for path in snapshots {
            let reader = try SnapshotReader(path: path)
            try SnapshotCopy(store: store.applying, reader: reader).run()
        }
        // Back into the file, which alone is renamed.
        let checkpoint = try store.applying.connection.statement("PRAGMA wal_checkpoint(TRUNCATE)")
        defer { checkpoint.reset() }
        guard try checkpoint.step(), checkpoint.integer(0) == 0 else {
            throw StoreError(.busy, "Another process has opened the unfinished file; try again.")
        }
    }
}
