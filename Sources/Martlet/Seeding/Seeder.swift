internal import Foundation
internal import MartletProtocol
internal import MartletStore
internal import SQLiteRecords
internal import SystemKit

/// Gives a device that has no file yet one to begin with.
struct Seeder: Sendable {
    let path: String
    let schema: SchemaSource
    let options: ClientOptions
    var faults: FileFaults?

    /// Does nothing where there is a file already.
    /// - Parameter server: Where the server's snapshot comes from; nil where there is no server.
    /// - Throws: `SyncError`, `StoreError`: what to do. There is then no file, and the next call goes
    ///   on where this one was.
    func run(_ seeding: Seeding, from server: (any SnapshotSource)?) async throws {
        let files = SeedFiles(path: path, faults: faults)
        let installer = SnapshotInstaller(files: files, source: schema, options: options)
        let disk = Confined(label: "martlet.seeding", ())
        do {
            let exists = try await disk.run { _ in try files.open().facts(of: files.name) != nil }
            if exists { return }
            let snapshot: String
            var manifest: SnapshotManifest?
            switch seeding {
            case .server:
                guard let server else { return }
                let fetcher = SnapshotFetcher(
                    source: server, files: files, progress: options.seedingProgress)
                guard let fetched = try await fetcher.fetchFirst() else { return }
                (snapshot, manifest) = (fetched.path, fetched.manifest)
            case .file(let shipped):
                snapshot = try await disk.run { _ in try Self.copy(shipped, files) }
            }
            let whole = manifest
            try await disk.run { _ in try installer.install(snapshot, firstOf: whole) }
        } catch {
            throw SyncError.seeding(error)
        }
    }

    /// Copies a shipped snapshot beside the device's file, and checks the copy.
    private static func copy(_ shipped: String, _ files: SeedFiles) throws -> String {
        let name = files.plain("all")
        let source = try OpenFile(readingFrom: shipped, faults: files.faults)
        try files.open().write(copyOf: source, as: name)
        do {
            let reader = try SnapshotReader(path: files.path(name))
            guard reader.description.parts.count == 1 else {
                throw SnapshotFault(
                    "it is one part of several; make one of everything with “martlet snapshot”")
            }
            try reader.verify()
        } catch {
            try files.open().remove(name)
            throw error
        }
        return files.path(name)
    }
}
