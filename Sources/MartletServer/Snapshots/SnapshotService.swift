internal import Dispatch
internal import MartletEmbedded
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import Synchronization
internal import SystemKit

/// Keeps the snapshots of one data set for people who see everything, and decides when the next one is
/// made.
///
/// The service makes snapshots in the background, after enough revisions or new data, and never for
/// a request. The whole server makes one at a time, so that they take one core and the memory of
/// one. If one fails, the service tries again automatically, even if nothing more is written.
final class SnapshotService: Sendable {
    /// The settings for making snapshots.
    struct Settings: Sendable {
        /// The folder for this data set's snapshots.
        var folder: String
        var plan: SeedingPlan
        /// The number of revisions after which a snapshot is made.
        var every: Int64
        /// The limits of snapshots of views.
        var views: ViewSnapshotLimits
        /// The queue on which all of the server's snapshots are made.
        var queue: DispatchQueue
        /// Runs a retry after a pause.
        var later: Scheduler
    }

    /// The least bytes of new entries after which a snapshot is made, even if there are few
    /// entries. They must also be half the size of the newest snapshot.
    static let leastBytes = 4 << 20

    /// The pause in seconds between a failure and the next try: the first one, which each further
    /// failure doubles, and the longest.
    static let firstPause = 1
    static let longestPause = 60

    private struct State {
        /// The snapshots, the newest first.
        var kept: [SnapshotManifest] = []
        /// The revision at which a snapshot was last begun; nil until the snapshots on the disk are
        /// known.
        var begun: Revision?
        /// The count of the log's bytes at that time.
        var begunBytes = 0
        /// The newest reported revision, and the count of the log's bytes at that time.
        var newest: Revision = 0
        var newestBytes = 0
        /// The number of consecutive failures. While it is not zero, only time leads to the next
        /// try.
        var failures = 0
        var isMaking = false
        var isStopped = false
        var ended: [CheckedContinuation<Void, Never>] = []
    }

    private let opened: OpenNode
    private let settings: Settings
    private let folder: String
    private let state = Mutex(State())

    init(_ opened: OpenNode, _ settings: Settings) {
        (self.opened, self.settings) = (opened, settings)
        folder = settings.folder + "/everybody"
    }

    /// Takes up the snapshots on the disk, removes the remains of a killed process, and makes a
    /// snapshot if none fits.
    ///
    /// - Parameter bytes: The log's bytes, counted from any start.
    func start(at revision: Revision, bytes: Int) {
        enqueue {
            let log = self.opened.readers.log()
            let kept = try self.takeUp(log)
            let parts = self.settings.plan.parts(of: self.opened.schema)
            let worthwhile = self.worthwhileBytes
            var behind = 0
            var fits = false
            if let newest = kept.first {
                // If the log cannot be read, it counts as empty.
                let entries = try? log.entries(
                    from: newest.revision + 1, through: revision, maxBytes: worthwhile)
                behind = entries?.reduce(0) { $0 + $1.body.count } ?? 0
                fits =
                    newest.schema == self.opened.schema.fingerprint && behind < worthwhile
                    && newest.parts.map(\.name) == parts
                    && revision - newest.revision < self.settings.every
            }
            self.state.withLock { [behind, fits] state in
                state.begun = fits ? kept.first?.revision ?? 0 : revision
                state.begunBytes = bytes - (fits ? behind : 0)
            }
            if !fits, revision > 0 { try self.make() }
        }
    }

    /// Notes that the data set has reached a revision.
    ///
    /// - Parameter bytes: The log's bytes, counted as for `start`.
    func reached(_ revision: Revision, bytes: Int) {
        let worthwhile = worthwhileBytes
        let isDue = state.withLock { state in
            state.newest = max(state.newest, revision)
            state.newestBytes = max(state.newestBytes, bytes)
            guard let begun = state.begun, !state.isMaking, state.failures == 0, revision > begun,
                revision - begun >= settings.every || bytes - state.begunBytes >= worthwhile
            else { return false }
            state.begun = revision
            state.begunBytes = bytes
            return true
        }
        if isDue { enqueue { try self.make() } }
    }

    /// The bytes of new entries that justify a new snapshot.
    private var worthwhileBytes: Int {
        Self.worthwhileBytes(over: state.withLock { $0.kept.first })
    }

    /// The bytes of new entries that justify a newer snapshot than this one.
    static func worthwhileBytes(over newest: SnapshotManifest?) -> Int {
        let bytes = newest?.parts.reduce(0) { $0 + $1.plain.bytes } ?? 0
        return max(leastBytes, Int(clamping: bytes / 2))
    }

    /// True if a snapshot is being made.
    var isAtWork: Bool { state.withLock { $0.isMaking } }

    /// Ends the making of a snapshot, and returns when that has ended.
    func stop() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isIdle = state.withLock { state in
                state.isStopped = true
                if state.isMaking { state.ended.append(continuation) }
                return !state.isMaking
            }
            if isIdle { continuation.resume() }
        }
    }

    // MARK: - For requests

    /// Returns the newest snapshot; nil if there is none yet. If its files are gone, the service forgets
    /// it and makes another.
    func manifest() -> SnapshotManifest? {
        guard let newest = state.withLock({ $0.kept.first }) else { return nil }
        guard !SnapshotFolder.holds(newest, in: folder) else { return newest }
        state.withLock { $0.kept.removeAll { $0.revision <= newest.revision } }
        opened.reports.log(
            .warning, "snapshot",
            [
                ("revision", .number(Int(newest.revision))),
                ("reason", .text("Its files are gone; another one is made.")),
            ])
        enqueue { try self.make() }
        return nil
    }

    /// Returns the path and the size of a file that a snapshot names; nil if none names it.
    func file(_ hash: String, _ coding: SnapshotCoding) -> (path: String, bytes: Int64)? {
        state.withLock { $0.kept }.lazy.compactMap { $0.file(hash, coding, in: self.folder) }.first
    }

    // MARK: - On the queue

    private var isWanted: Bool { state.withLock { !$0.isStopped } }

    private func enqueue(_ work: @escaping @Sendable () throws -> Void) {
        let isFree = state.withLock { state in
            guard !state.isMaking, !state.isStopped else { return false }
            state.isMaking = true
            return true
        }
        guard isFree else { return }
        settings.queue.async {
            var failure: (any Error)?
            do {
                if self.isWanted { try work() }
            } catch {
                // If the server stops, the next start removes the unfinished files.
                if self.isWanted { failure = error }
            }
            let (ended, newest, bytes, failures) = self.state.withLock { state in
                state.isMaking = false
                state.failures = failure == nil ? 0 : state.failures + 1
                defer { state.ended.removeAll() }
                return (state.ended, state.newest, state.newestBytes, state.failures)
            }
            ended.forEach { $0.resume() }
            if let failure { self.tryAgain(work, after: failures, failure) }
            // Enough entries may have arrived meanwhile, and perhaps none arrives later.
            self.reached(newest, bytes: bytes)
        }
    }

    private func tryAgain(
        _ work: @escaping @Sendable () throws -> Void, after failures: Int, _ failure: any Error
    ) {
        let pause = min(Self.longestPause, Self.firstPause << min(failures - 1, 6))
        opened.reports.metrics.countSnapshot(isMade: false)
        opened.reports.log(
            .error, "snapshot",
            [
                ("reason", .text(String(describing: failure))), ("tries", .number(failures)),
                ("nextInSeconds", .number(pause)),
            ])
        settings.later(.seconds(pause)) { [weak self] in self?.enqueue(work) }
    }

    private func takeUp(_ log: any LogSource) throws -> [SnapshotManifest] {
        let folder = try SnapshotFolder(path: folder)
        // A data set restored from a copy may have snapshots of a history that it does not have.
        let ours = try folder.manifests().filter { $0.dataSet == opened.identity }
        let shared = try ours.filter { try log.hash(at: $0.revision)?.text == $0.lineage }
        if shared.count < ours.count { try retireViews() }
        let kept = try folder.keep(shared)
        state.withLock { $0.kept = kept }
        return kept
    }

    /// Has the node retire all views, because the data set was restored.
    private func retireViews() throws {
        opened.feed.meetOtherLog()
        try opened.node.wait { node in
            _ = node.takeExternalWrites(now: opened.now())
            if let fault = node.takeFault() { throw fault }
        }
    }

    private func make() throws {
        state.withLock { state in
            state.begun = max(state.begun ?? 0, state.newest)
            state.begunBytes = max(state.begunBytes, state.newestBytes)
        }
        let source = try opened.readers.snapshotFile(in: settings.folder, of: nil) {
            self.isWanted
        }
        defer { source.remove() }
        let folder = try SnapshotFolder(path: folder)
        let maker = SnapshotMaker(
            path: source.path, plan: settings.plan, unsendable: opened.unsendable,
            consistently: opened.consistently)
        let cut = try maker.make(while: { self.isWanted }) { folder.making($0) }
        let manifest = try folder.publish(cut) { isWanted }
        var all = state.withLock { $0.kept }
        all.removeAll { $0.revision == manifest.revision }
        let kept = Array(([manifest] + all).prefix(SnapshotFolder.generations))
        // The new snapshot is named before the old files are removed, so that no request meets a file
        // that is gone.
        state.withLock { $0.kept = kept }
        try folder.keep(kept)
        opened.reports.reportSnapshot(manifest)
    }
}

extension SnapshotManifest {
    /// Returns the path and the size of a file of the snapshot; nil if it has no such file.
    func file(
        _ hash: String, _ coding: SnapshotCoding, in folder: String
    ) -> (path: String, bytes: Int64)? {
        let part = parts.first { $0.hash == hash }
        guard let bytes = part?[coding: coding.rawValue]?.sum.bytes else { return nil }
        return (folder + "/" + SnapshotFolder.file(hash, coding), bytes)
    }
}

extension DataSetReports {
    /// Reports a snapshot that was made.
    func reportSnapshot(_ manifest: SnapshotManifest) {
        metrics.countSnapshot(isMade: true)
        log(
            .info, "snapshot",
            [
                ("revision", .number(Int(manifest.revision))),
                ("records", .number(Int(manifest.parts.reduce(0) { $0 + $1.records }))),
            ] + (manifest.view.map { [("view", .number(Int($0)))] } ?? []))
    }
}
