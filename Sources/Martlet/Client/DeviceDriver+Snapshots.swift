internal import MartletDevice
internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import Synchronization
internal import SystemKit

/// The downloads of snapshots, as the shell does them.
struct SnapshotDownloads {
    /// Where the files of downloads lie: beside the device's file.
    let files: SeedFiles
    /// Told of every byte, in the whole of all parts.
    let progress: @Sendable (SeedingProgress) -> Void
    let randomBits: @Sendable () -> UInt64
    /// Bytes of the part under way.
    let meter = SeedingMeter()
    /// The fetching of a first part, while it lasts.
    var first: Task<Void, Never>?
    /// The fetching of another part, while it lasts.
    var part: Task<Void, Never>?
    /// Brings the next try.
    var timer: Task<Void, Never>?

    init(path: String, options: ClientOptions) {
        files = SeedFiles(path: path)
        progress = options.seedingProgress
        randomBits = options.randomBits
    }

    func fetcher(_ source: any SnapshotSource) -> SnapshotFetcher {
        SnapshotFetcher(source: source, files: files) { [progress, meter] now in
            meter.value = now.received
            progress(now)
        }
    }

    /// Ends what is under way; what has come stays on the disk.
    func cancel() {
        first?.cancel()
        part?.cancel()
        timer?.cancel()
    }
}

/// How many bytes of a snapshot have come.
final class SeedingMeter: Sendable {
    private let bytes = Atomic<Int64>(0)

    var value: Int64 {
        get { bytes.load(ordering: .relaxed) }
        set { bytes.store(newValue, ordering: .relaxed) }
    }
}

extension DeviceDriver {
    /// Fetches the newest snapshot, or the first part of it, for a device that has a file and no
    /// data, beside what it may have queued. If there is none, or one of another data set than the one
    /// that edits go to, the device begins with the change log.
    func fetchSnapshot(_ number: Int) {
        guard let inbox else { return }
        guard let transport, let source = transport as? any SnapshotSource else {
            return inbox(.snapshotFailed(number, cut: nil))
        }
        let proof = DataSetProof(transport: transport, randomBits: downloads.randomBits)
        let fetcher = downloads.fetcher(source)
        let files = downloads.files
        let place = files.nameInFolder(node.store.snapshotPath)
        let before = downloads.first
        downloads.first = Task {
            // One that was ended may still be writing to the same files.
            await before?.value
            do {
                guard let fetched = try await fetcher.fetchFirst() else {
                    return inbox(.snapshotFailed(number, cut: nil))
                }
                let manifest = fetched.manifest
                try await proof.demand(
                    manifest.dataSet, at: manifest.revision, lineage: manifest.lineage)
                try await fetcher.keep(fetched, as: place)
                inbox(.snapshotFetched(number, fetched.manifest))
            } catch {
                // If another try cannot help, the device begins with the change log.
                let told = SyncError.seeding(error) as? SyncError
                if told?.kind == .wrongDataSet { try? files.removeAll() }
                let isCut = told.map { [.offline, .busy, .untrusted].contains($0.kind) } ?? false
                inbox(.snapshotFailed(number, cut: isCut ? told : nil))
            }
        }
    }

    /// Fetches another part, beside whatever else is under way.
    func fetchPart(
        _ number: Int, _ part: SnapshotManifest.Part, of manifest: SnapshotManifest
    ) {
        guard let inbox else { return }
        guard let source = transport as? any SnapshotSource else {
            let error = SyncError(.rejected, "The transport has no snapshots.")
            return inbox(.partFailed(number, error, retryAfter: nil))
        }
        let fetcher = downloads.fetcher(source)
        let before = downloads.part
        downloads.part = Task {
            await before?.value
            do {
                let path = try await fetcher.fetch(part, of: manifest)
                inbox(.partFetched(number, path: path))
            } catch let failure as TransportFailure where failure.isGone {
                let newest = try? await fetcher.newest()
                inbox(.partGone(number, newest: newest))
            } catch {
                let kept = SyncError.seeding(error) as? SyncError
                inbox(
                    .partFailed(
                        number, kept ?? SyncError(.storage, "\(error)"),
                        retryAfter: (error as? TransportFailure)?.retryAfter))
            }
        }
    }

    /// Removes what the download of an installed part has left.
    func seeded(_ installed: InstalledPart) {
        // What cannot be removed now is found when the file is opened.
        if installed.isLast {
            try? downloads.files.removeAll()
        } else {
            try? downloads.files.remove(installed.name)
        }
    }

    func setPartTimer(_ number: Int, milliseconds: Int64) {
        guard let inbox else { return }
        downloads.timer?.cancel()
        downloads.timer = Task {
            guard (try? await Task.sleep(for: .milliseconds(milliseconds))) != nil else { return }
            inbox(.timer(number))
        }
    }

    /// What of the first download is here.
    func seedingStatus() throws -> SeedingStatus {
        try withStore { store in
            guard let pending = try store.pendingSnapshot else { return SeedingStatus() }
            return SeedingStatus(pending, underWay: downloads.meter.value)
        }
    }
}
