internal import Dispatch
internal import MartletEmbedded
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import Synchronization

/// Keeps the snapshots of one data set, and decides when the next one is made.
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
        /// The snapshots by permission class, the newest first.
        var kept: [PermissionClass: [SnapshotManifest]] = [:]
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
    private let filter: VisibilityFilter
    private let state = Mutex(State())

    init(_ opened: OpenNode, _ settings: Settings, filter: VisibilityFilter = .everything) {
        (self.opened, self.settings) = (opened, settings)
        self.filter = filter
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
            let fits = kept.values.allSatisfy { manifests in
                guard let newest = manifests.first else { return false }
                // If the log cannot be read, it counts as empty.
                let entries = try? log.entries(
                    from: newest.revision + 1, through: revision, maxBytes: worthwhile)
                behind = max(behind, entries?.reduce(0) { $0 + $1.body.count } ?? 0)
                return newest.schema == self.opened.schema.fingerprint && behind < worthwhile
                    && newest.parts.map(\.name) == parts
                    && revision - newest.revision < self.settings.every
            }
            let oldest = kept.values.map { $0.first?.revision ?? 0 }.min() ?? 0
            self.state.withLock { state in
                state.begun = max(oldest, fits ? 0 : revision)
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
        let largest = state.withLock { state in
            state.kept.values.compactMap { $0.first?.parts.reduce(0) { $0 + $1.plain.bytes } }.max()
        }
        return max(Self.leastBytes, Int(clamping: (largest ?? 0) / 2))
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

    /// Returns the newest snapshot for a principal; nil if there is none yet. If its files are
    /// gone, the service forgets it and makes another.
    func manifest(for principal: Principal) -> SnapshotManifest? {
        guard let permissions = permissions(of: principal) else { return nil }
        guard let newest = state.withLock({ $0.kept[permissions]?.first }) else { return nil }
        guard !SnapshotFolder.holds(newest, in: folder(permissions)) else { return newest }
        state.withLock { $0.kept[permissions]?.removeAll { $0.revision <= newest.revision } }
        opened.reports.log(
            .warning, "snapshot",
            [
                ("revision", .number(Int(newest.revision))),
                ("reason", .text("Its files are gone; another one is made.")),
            ])
        enqueue { try self.make() }
        return nil
    }

    /// Returns the path and the size of a file that a snapshot for a principal names; nil if none
    /// names it.
    func file(
        _ hash: String, _ coding: SnapshotCoding, for principal: Principal
    ) -> (path: String, bytes: Int64)? {
        guard let permissions = permissions(of: principal) else { return nil }
        let part = state.withLock { state in
            state.kept[permissions]?.lazy.flatMap(\.parts).first { $0.hash == hash }
        }
        guard let bytes = part?[coding: coding.rawValue]?.sum.bytes else { return nil }
        return (folder(permissions) + "/" + SnapshotFolder.file(hash, coding), bytes)
    }

    /// Returns the class of a principal; nil if there are no snapshots for it, because it does not see
    /// everything.
    private func permissions(of principal: Principal) -> PermissionClass? {
        let isWhole = opened.feed.views.showsEverything(to: principal)
        return isWhole ? filter.permissionClass(of: principal) : nil
    }

    // MARK: - On the queue

    private var isWanted: Bool { state.withLock { !$0.isStopped } }

    private func folder(_ permissions: PermissionClass) -> String {
        settings.folder + "/" + permissions.name
    }

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

    private func takeUp(
        _ log: any LogSource
    ) throws -> [PermissionClass: [SnapshotManifest]] {
        var kept: [PermissionClass: [SnapshotManifest]] = [:]
        for permissions in filter.permissionClasses {
            let folder = try SnapshotFolder(path: folder(permissions))
            // A data set restored from a copy may have snapshots of a history that it does not
            // have.
            kept[permissions] = try folder.keep(
                folder.manifests().filter {
                    $0.dataSet == opened.identity
                        && (try? log.hash(at: $0.revision))??.text == $0.lineage
                })
        }
        state.withLock { $0.kept = kept }
        return kept
    }

    private func make() throws {
        state.withLock { state in
            state.begun = max(state.begun ?? 0, state.newest)
            state.begunBytes = max(state.begunBytes, state.newestBytes)
        }
        let source = try opened.readers.snapshotFile(in: settings.folder) { self.isWanted }
        defer { source.remove() }
        for permissions in filter.permissionClasses {
            let folder = try SnapshotFolder(path: folder(permissions))
            let maker = SnapshotMaker(
                path: source.path, plan: settings.plan, filter: filter,
                unsendable: opened.unsendable, consistently: opened.consistently)
            let cut = try maker.make(for: permissions, while: { self.isWanted }) {
                folder.making($0)
            }
            let manifest = try folder.publish(cut) { isWanted }
            var all = state.withLock { $0.kept[permissions] ?? [] }
            all.removeAll { $0.revision == manifest.revision }
            let kept = Array(([manifest] + all).prefix(SnapshotFolder.generations))
            // The new snapshot is named before the old files are removed, so that no request meets
            // a file that is gone.
            state.withLock { $0.kept[permissions] = kept }
            _ = try folder.keep(kept)
            opened.reports.metrics.countSnapshot(isMade: true)
            opened.reports.log(
                .info, "snapshot",
                [
                    ("revision", .number(Int(manifest.revision))),
                    ("records", .number(Int(manifest.parts.reduce(0) { $0 + $1.records }))),
                ])
        }
    }
}
