internal import MartletDevice
internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteRecords
internal import SystemKit

/// Fetches the parts of a snapshot to files next to a device's file, and checks each part
/// completely.
///
/// An interrupted download continues where it stopped, in the same call or in the next: all
/// received bytes stay on the disk. Wrong bytes are removed.
struct SnapshotFetcher: Sendable {
    /// The first part of a snapshot on this device.
    struct Fetched: Sendable {
        let manifest: SnapshotManifest
        /// The verified file.
        let path: String
    }

    let source: any SnapshotSource
    let files: SeedFiles
    /// The name of the device; nil if the snapshot is not for a device.
    var client: String?
    /// Whether the device has no file yet, so that its name has to be kept with the download.
    var keepsClient = false
    var progress: @Sendable (SeedingProgress) -> Void = { _ in }
    var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

    /// The number of consecutive attempts without new bytes after which the caller gets the error.
    private static let fruitlessTries = 3
    /// The number of snapshots begun in one call. The server keeps two, so the file of a third
    /// exists.
    private static let snapshotsBegun = 3
    /// An attempt that brings at least this many bytes is followed by the next at once; otherwise
    /// there is a pause.
    private static let goodBytes: Int64 = 64 << 10
    private static let pause = Duration.milliseconds(250)

    /// Fetches the first part of the newest snapshot, or continues the download that was begun.
    /// - Parameter mostParts: A snapshot of more parts is refused before any part is fetched.
    /// - Returns: The part; nil if the server has no snapshot, has none in a format that this
    ///   version reads, or announces files that it does not have.
    /// - Throws: The errors that `SyncError.seeding` turns into a sentence.
    func fetchFirst(mostParts: Int = .max) async throws -> Fetched? {
        let disk = Confined(label: "martlet.seeding", Disk())
        let files = files
        for _ in 0..<Self.snapshotsBegun {
            guard let manifest = try await manifest(disk), let first = manifest.parts.first else {
                return nil
            }
            guard manifest.parts.count <= mostParts else {
                try await disk.run { _ in try files.removeAll() }
                throw SyncError(
                    .rejected,
                    "The server's snapshot is in several parts, which are no single file.")
            }
            do {
                let path = try await fetch(first, of: manifest, disk)
                return Fetched(manifest: manifest, path: path)
            } catch let failure as TransportFailure where failure.isGone {
                try await disk.run { _ in try files.removeAll() }
            } catch {
                if error is SnapshotFault || error is SnapshotError {
                    try await disk.run { _ in try files.removeAll() }
                }
                throw error
            }
        }
        // Several servers may share an address, each with its own snapshots. The change sets, which
        // all of them have, lead to the same state.
        return nil
    }

    /// Fetches one part, or continues to fetch it.
    /// - Returns: The path of the verified file.
    /// - Throws: The errors of `fetchFirst`.
    func fetch(
        _ part: SnapshotManifest.Part, of manifest: SnapshotManifest
    ) async throws -> String {
        let disk = Confined(label: "martlet.seeding", Disk())
        do {
            return try await fetch(part, of: manifest, disk)
        } catch {
            if error is SnapshotFault || error is SnapshotError {
                let files = files
                try await disk.run { _ in try files.remove(part.name) }
            }
            throw error
        }
    }

    /// Moves a fetched file to its final name, and removes the other files of the download.
    /// - Parameter name: The name, in the folder of the device's file.
    func keep(_ fetched: Fetched, as name: String) async throws {
        let files = files
        try await Confined(label: "martlet.seeding", ()).run { _ in
            try files.open().rename(files.nameInFolder(fetched.path), to: name)
            try files.removeAll()
        }
    }

    /// Returns the server's newest manifest; nil if it has none, or none in a format that this
    /// version reads.
    func newest() async throws -> SnapshotManifest? {
        guard let manifest = try await source.manifest(client: client),
            manifest.format == SnapshotFormat.number
        else { return nil }
        return manifest
    }

    /// The part that is being received, confined to its queue.
    private struct Disk {
        var part: IncomingPart?

        func current() throws -> IncomingPart {
            guard let part else { throw SnapshotFault("no part was begun") }
            return part
        }
    }

    private func manifest(_ disk: Confined<Disk>) async throws -> SnapshotManifest? {
        let (files, client, keepsClient) = (files, client, keepsClient)
        if let begun = try await disk.run({ _ in try files.begun() }) { return begun }
        let manifest = try await newest()
        try await disk.run { _ in
            try files.removeAll()
            if let manifest { try files.begin(manifest, client: keepsClient ? client : nil) }
        }
        return manifest
    }

    private func fetch(
        _ part: SnapshotManifest.Part, of manifest: SnapshotManifest, _ disk: Confined<Disk>
    ) async throws -> String {
        let files = files
        let (before, total) = (manifest.bytes(before: part.name), manifest.bytes())
        let progress: @Sendable (Int64) -> Void = { [progress] received in
            progress(SeedingProgress(received: before + received, total: total))
        }
        try await disk.run { $0.part = try IncomingPart(part, files: files) }
        while true {
            let wasResumed = try await disk.run { try $0.current().isResumed }
            try await download(part, disk, progress)
            do {
                return try await disk.run { disk in
                    let path = try disk.current().inflate()
                    try Self.verify(path, part, manifest)
                    return path
                }
            } catch  where wasResumed && (error is SnapshotFault || error is SnapshotError) {
                // A crash may have damaged the stored bytes, so the next attempt starts at the
                // beginning.
                try await disk.run { try $0.current().restart(tag: nil) }
            }
        }
    }

    /// Receives the bytes that are missing. If none is, it still asks for the part: an earlier call may have
    /// fetched it for another user, or before records left the user's view.
    private func download(
        _ part: SnapshotManifest.Part, _ disk: Confined<Disk>,
        _ progress: @escaping @Sendable (Int64) -> Void
    ) async throws {
        var fruitless = 0
        while true {
            let (received, tag, isComplete) = try await disk.run { disk in
                let part = try disk.current()
                return (part.received, part.tag, part.isComplete)
            }
            do {
                if isComplete {
                    let last = try await source.open(
                        part, from: received - 1, tag: tag, client: client)
                    _ = try await last.next()
                    return
                }
                try await receive(part, from: received, tag: tag, disk, progress)
                let isComplete = try await disk.run { try $0.current().isComplete }
                guard isComplete else {
                    throw TransportFailure(message: "The download ended before its end.")
                }
                return
            } catch let failure as TransportFailure where failure.status == nil {
                let now = try await disk.run { try $0.current().received }
                fruitless = now > received ? 0 : fruitless + 1
                guard fruitless < Self.fruitlessTries, !Task.isCancelled else { throw failure }
                if now - received < Self.goodBytes { try? await sleep(Self.pause) }
            }
        }
    }

    private func receive(
        _ part: SnapshotManifest.Part, from offset: Int64, tag: String?, _ disk: Confined<Disk>,
        _ progress: @escaping @Sendable (Int64) -> Void
    ) async throws {
        let bytes = try await source.open(part, from: offset, tag: tag, client: client)
        try await disk.run { try $0.current().begin(at: bytes.offset, tag: bytes.tag) }
        while let chunk = try await bytes.next() {
            let received = try await disk.run { disk in
                try disk.current().append(chunk)
                return try disk.current().received
            }
            progress(received)
        }
    }

    /// Checks the file, and that it is the one in the manifest.
    private static func verify(
        _ path: String, _ part: SnapshotManifest.Part, _ manifest: SnapshotManifest
    ) throws {
        let reader = try SnapshotReader(path: path)
        do {
            try reader.expect(part.name, of: manifest)
        } catch {
            throw SnapshotFault("it is another one than was announced")
        }
        try reader.verify()
    }
}

extension SnapshotManifest {
    /// Returns the compressed bytes of the parts before `name`, or of all parts.
    func bytes(before name: String? = nil) -> Int64 {
        parts.prefix { $0.name != name }.reduce(0) { $0 + ($1[coding: "gzip"]?.sum.bytes ?? 0) }
    }
}

extension TransportFailure {
    /// Whether the server no longer has the requested file.
    var isGone: Bool { problem?.kind == "noSnapshotFile" }
}
