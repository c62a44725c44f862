internal import Foundation
internal import MartletDevice
internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteRecords
internal import SystemKit

/// Creates the first file of a device that has none yet.
struct Seeder: Sendable {
    let path: String
    let schema: SchemaSource
    let options: ClientOptions
    var faults: FileFaults?

    /// Creates the device's file; does nothing if there is one already.
    /// - Parameters:
    ///   - server: The source of the server's snapshot; nil if there is no server.
    ///   - transport: The transport that edits will use; its data set must be the snapshot's.
    /// - Returns: The name of the device, if there is no file yet and the server may know the device.
    /// - Throws: `SyncError` and `StoreError`, which say what to do. There is no file then, and the
    ///   next call continues where this one stopped.
    @discardableResult
    func run(
        _ seeding: Seeding, from server: (any SnapshotSource)?, proof transport: (any Transport)?
    ) async throws -> String? {
        let files = SeedFiles(path: path, faults: faults)
        let installer = SnapshotInstaller(files: files, source: schema, options: options)
        let disk = Confined(label: "martlet.seeding", ())
        do {
            let exists = try await disk.run { _ in try files.open().facts(of: files.name) != nil }
            if exists { return nil }
            let snapshot: String
            var (manifest, client): (SnapshotManifest?, String?)
            switch seeding {
            case .server:
                guard let server else { return nil }
                let (part, name) = try await fetch(from: server, files, disk)
                guard let fetched = part else { return name }
                (snapshot, manifest, client) = (fetched.path, fetched.manifest, name)
                guard try await check(fetched.manifest, transport, disk) else { return name }
            case .file(let shipped):
                snapshot = try await disk.run { _ in try Self.copy(shipped, files) }
            }
            let (whole, name) = (manifest, client)
            try await disk.run { _ in
                try installer.install(snapshot, firstOf: whole, as: name)
            }
            return nil
        } catch {
            throw SyncError.seeding(error)
        }
    }

    /// Fetches the first part of the server's snapshot, or continues to fetch it under the same name.
    /// - Returns: The part; nil if there is no snapshot. The name of the device.
    private func fetch(
        from server: any SnapshotSource, _ files: SeedFiles, _ disk: Confined<Void>
    ) async throws -> (SnapshotFetcher.Fetched?, client: String) {
        func fetched(as client: String) async throws -> (SnapshotFetcher.Fetched?, String) {
            let fetcher = SnapshotFetcher(
                source: server, files: files, client: client, keepsClient: true,
                progress: options.seedingProgress, sleep: options.sleep)
            return (try await fetcher.fetchFirst(), client)
        }
        if let begun = try await disk.run({ _ in try files.begunClient() }) {
            do {
                return try await fetched(as: begun)
            } catch let failure as TransportFailure where failure.problem?.kind == "clientBound" {
                // Another user began the download, so this one may have no byte of it.
                try await disk.run { _ in try files.removeAll() }
            }
        }
        return try await fetched(as: DeviceStore.newIdentity(options.randomBits))
    }

    /// Ensures that a snapshot is of the data set that edits will go to. If it is of another one, or of
    /// records that the user was not given, the downloaded files are removed.
    /// - Returns: False if the user was not given the records; the device begins without a snapshot.
    private func check(
        _ manifest: SnapshotManifest, _ transport: (any Transport)?, _ disk: Confined<Void>
    ) async throws -> Bool {
        let files = SeedFiles(path: path, faults: faults)
        do throws(SyncError) {
            guard options.dataSet ?? manifest.dataSet == manifest.dataSet else {
                throw DataSetProof.isOther
            }
            guard let transport else { return true }
            let isGiven = try await DataSetProof(
                transport: transport, randomBits: options.randomBits
            ).demand(manifest.dataSet, at: manifest.revision, lineage: manifest.lineage)
            guard !isGiven else { return true }
        } catch {
            if error.kind == .wrongDataSet { try await disk.run { _ in try files.removeAll() } }
            throw error
        }
        try await disk.run { _ in try files.removeAll() }
        return false
    }

    /// Copies a shipped snapshot next to the device's file, and checks the copy.
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
