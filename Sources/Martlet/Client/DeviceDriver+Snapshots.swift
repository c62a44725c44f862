internal import MartletDevice
internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import Synchronization
internal import SystemKit

/// The downloads of snapshots that a driver runs.
struct SnapshotDownloads {
    /// The files of downloads, next to the device's file.
    let files: SeedFiles
    /// Receives the progress of all parts together.
    let progress: @Sendable (SeedingProgress) -> Void
    let randomBits: @Sendable () -> UInt64
    /// The bytes received of the whole download, as last reported.
    let meter = SeedingMeter()
    /// Whether files of a download may be left.
    var mayHaveFiles = false
    /// The task that fetches a first part; nil if there is none.
    var first: Task<Void, Never>?
    /// The task that fetches another part; nil if there is none.
    var part: Task<Void, Never>?
    /// The task that waits for the next attempt.
    var timer: Task<Void, Never>?

    init(path: String, options: ClientOptions) {
        files = SeedFiles(path: path)
        progress = options.seedingProgress
        randomBits = options.randomBits
    }

    /// - Parameter client: The device's name.
    func fetcher(_ source: any SnapshotSource, _ client: String?) -> SnapshotFetcher {
        SnapshotFetcher(source: source, files: files, client: client) { [progress, meter] now in
            meter.value = now.received
            progress(now)
        }
    }

    /// Cancels the running downloads. The bytes received so far stay on the disk.
    func cancel() {
        first?.cancel()
        part?.cancel()
        timer?.cancel()
    }
}

/// The number of bytes of a snapshot that have been received.
final class SeedingMeter: Sendable {
    private let bytes = Atomic<Int64>(0)

    var value: Int64 {
        get { bytes.load(ordering: .relaxed) }
        set { bytes.store(newValue, ordering: .relaxed) }
    }
}

extension DeviceDriver {
    /// Fetches the newest snapshot, or its first part, for a device that has a file but no data;
    /// the device may have queued edits. If there is no snapshot, or one of another data set than
    /// the one that edits go to, the device begins with the change log.
    func fetchSnapshot(_ number: Int) {
        guard let inbox else { return }
        guard let transport, let source = transport as? any SnapshotSource else {
            return inbox(.snapshotFailed(number, cut: nil))
        }
        let proof = DataSetProof(transport: transport, randomBits: downloads.randomBits)
        let fetcher = downloads.fetcher(source, try? node.store.clientID)
        let files = downloads.files
        let fileName = files.nameInFolder(node.store.snapshotPath)
        downloads.mayHaveFiles = true
        let before = downloads.first
        downloads.first = Task {
            // A cancelled download may still be writing to the same files.
            await before?.value
            do {
                guard let fetched = try await fetcher.fetchFirst() else {
                    return inbox(.snapshotFailed(number, cut: nil))
                }
                let manifest = fetched.manifest
                let isGiven = try await proof.demand(
                    manifest.dataSet, at: manifest.revision, lineage: manifest.lineage)
                guard isGiven else {
                    try files.removeAll()
                    return inbox(.snapshotFailed(number, cut: nil))
                }
                try await fetcher.keep(fetched, as: fileName)
                inbox(.snapshotFetched(number, fetched.manifest))
            } catch {
                // If another attempt cannot help, the device begins with the change log.
                let told = SyncError.seeding(error) as? SyncError
                if told?.kind == .wrongDataSet { try? files.removeAll() }
                let isCut = told.map { [.offline, .busy, .untrusted].contains($0.kind) } ?? false
                inbox(.snapshotFailed(number, cut: isCut ? told : nil))
            }
        }
    }

    /// Fetches another part while other work continues.
    func fetchPart(
        _ number: Int, _ part: SnapshotManifest.Part, of manifest: SnapshotManifest
    ) {
        guard let inbox else { return }
        guard let source = transport as? any SnapshotSource else {
            let error = SyncError(.rejected, "The transport has no snapshots.")
            return inbox(.partFailed(number, error, retryAfter: nil))
        }
        let fetcher = downloads.fetcher(source, try? node.store.clientID)
        downloads.mayHaveFiles = true
        let before = downloads.part
        downloads.part = Task {
            await before?.value
            inbox(await DeviceDriver.outcome(number, of: part, of: manifest, by: fetcher))
        }
    }

    /// Fetches a part. If the server does not have it any more, it asks for a newer snapshot.
    private static func outcome(
        _ number: Int, of part: SnapshotManifest.Part, of manifest: SnapshotManifest,
        by fetcher: SnapshotFetcher
    ) async -> DeviceNode.Event {
        do {
            return .partFetched(number, path: try await fetcher.fetch(part, of: manifest))
        } catch {
            guard (error as? TransportFailure)?.isGone == true else {
                return partFailed(number, error)
            }
        }
        do {
            return .partGone(number, newest: try await fetcher.newest())
        } catch {
            return partFailed(number, error)
        }
    }

    private static func partFailed(_ number: Int, _ error: any Error) -> DeviceNode.Event {
        let kept = SyncError.seeding(error) as? SyncError
        return .partFailed(
            number, kept ?? SyncError(.storage, "\(error)"),
            retryAfter: (error as? TransportFailure)?.retryAfter)
    }

    /// Removes the files that the download of an installed part has left.
    func seeded(_ installed: InstalledPart) {
        // The next opening of the device's file removes the files that cannot be removed now.
        if installed.isLast {
            try? downloads.files.removeAll()
        } else {
            try? downloads.files.remove(installed.name)
        }
    }

    /// Removes the files of a download that was given up, after an exchange: the device has what they would
    /// have brought, and they may have records that its user may not see any more.
    func removeUnneededDownloads() {
        guard downloads.mayHaveFiles, !node.isFetchingPart,
            (try? node.store.isSeeding) == false
        else { return }
        // If this fails, the next exchange tries again.
        downloads.mayHaveFiles = (try? downloads.files.removeAll()) == nil
    }

    func setPartTimer(_ number: Int, milliseconds: Int64) {
        guard let inbox else { return }
        downloads.timer?.cancel()
        downloads.timer = Task {
            guard (try? await Task.sleep(for: .milliseconds(milliseconds))) != nil else { return }
            inbox(.timer(number))
        }
    }

    /// Returns the state of the first download.
    func seedingStatus() throws -> SeedingStatus {
        try withStore { store in
            guard let pending = try store.pendingSnapshot else { return SeedingStatus() }
            return SeedingStatus(pending, underWay: downloads.meter.value)
        }
    }
}
