internal import MartletDevice
package import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteRecords
internal import SystemKit

/// A snapshot as a file that a device can begin with (`Seeding.file`).
package struct ShippedSnapshot: Hashable, Sendable {
    /// The data set's identity.
    package let dataSet: String
    /// The revision of a device that begins with it.
    package let revision: Revision
    /// The number of its records.
    package let records: Int64

    /// Fetches the newest snapshot to a file, and replaces the file at that path. If a fetch was
    /// interrupted, the next call continues it.
    /// - Throws: `SyncError`: `.busy` if the server has no snapshot that this version can read,
    ///   `.rejected` if its snapshot has several parts. `StoreError` if a file fails. The file at
    ///   `path` is unchanged then.
    package static func fetch(
        from source: any SnapshotSource, to path: String,
        progress: @escaping @Sendable (SeedingProgress) -> Void = { _ in }
    ) async throws -> ShippedSnapshot {
        do {
            let files = SeedFiles(path: path)
            let fetched = try await SnapshotFetcher(
                source: source, files: files, progress: progress
            ).fetchFirst(mostParts: 1)
            guard let fetched else {
                throw SyncError(
                    .busy,
                    "The server has no snapshot yet, or none that this version reads; try again later."
                )
            }
            let disk = Confined(label: "martlet.seeding", ())
            return try await disk.run { _ in
                try files.open().rename(files.nameInFolder(fetched.path), to: files.name)
                try files.removeAll()
                return try read(path)
            }
        } catch {
            throw SyncError.seeding(error)
        }
    }

    /// Moves a finished snapshot to its path, after checking it and flushing it to the disk.
    /// Blocks.
    /// - Parameters:
    ///   - made: The name of the file, in the folder of `path`.
    ///   - path: The path for the snapshot.
    /// - Throws: `SyncError`, `StoreError`; the file at `path` is unchanged then.
    package static func finish(_ made: String, at path: String) throws -> ShippedSnapshot {
        do {
            let files = SeedFiles(path: path)
            let folder = try files.open()
            guard let file = try folder.file(made) else {
                throw SnapshotFault("it is gone")
            }
            try SnapshotReader(path: files.path(made)).verify()
            try file.synchronize()
            try folder.rename(made, to: files.name)
            return try read(path)
        } catch {
            throw SyncError.seeding(error)
        }
    }

    private static func read(_ path: String) throws -> ShippedSnapshot {
        let description = try SnapshotReader(path: path).description
        return ShippedSnapshot(
            dataSet: description.dataSet, revision: description.revision,
            records: description.records)
    }
}
