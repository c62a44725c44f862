internal import Foundation
internal import MartletDevice
internal import MartletModel
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
    /// - Parameters:
    ///   - server: The server's snapshot comes from there; nil if there is no server.
    ///   - transport: Where edits will go; the snapshot must be of the data set that is kept there.
    /// - Throws: `SyncError`, `StoreError`: what to do. There is then no file, and the next call goes
    ///   on where this one was.
    func run(
        _ seeding: Seeding, from server: (any SnapshotSource)?, proof transport: (any Transport)?
    ) async throws {
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
                    source: server, files: files, progress: options.seedingProgress,
                    sleep: options.sleep)
                guard let fetched = try await fetcher.fetchFirst() else { return }
                (snapshot, manifest) = (fetched.path, fetched.manifest)
                try await check(fetched.manifest, transport, disk)
            case .file(let shipped):
                snapshot = try await disk.run { _ in try Self.copy(shipped, files) }
            }
            let whole = manifest
            try await disk.run { _ in try installer.install(snapshot, firstOf: whole) }
        } catch {
            throw SyncError.seeding(error)
        }
    }

    /// Sees to it that a snapshot is of the data set that edits will go to. What was fetched of another one is
    /// not kept.
    private func check(
        _ manifest: SnapshotManifest, _ transport: (any Transport)?, _ disk: Confined<Void>
    ) async throws {
        let files = SeedFiles(path: path, faults: faults)
        do throws(SyncError) {
            guard options.dataSet ?? manifest.dataSet == manifest.dataSet else {
                throw DataSetProof.isOther
            }
            guard let transport else { return }
            try await DataSetProof(transport: transport, randomBits: options.randomBits)
                .demand(manifest.dataSet, at: manifest.revision, lineage: manifest.lineage)
        } catch {
            if error.kind == .wrongDataSet { try await disk.run { _ in try files.removeAll() } }
            throw error
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
