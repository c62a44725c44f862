internal import Dispatch
internal import MartletCore
internal import MartletProtocol
internal import MartletServerCore
internal import Synchronization

/// The snapshots of one data set: what there is, and when the next is made.
///
/// They are made in the background, after so many revisions, and never for a request. One is made
/// at a time in the whole server, so that making them takes one core and the memory of one. What
/// failed is tried again by itself, however little is written meanwhile.
final class SnapshotService: Sendable {
    /// See `Settling`; from any thread.
    typealias Settling =
        @Sendable (_ body: () throws(StorageFault) -> Void) throws(StorageFault) -> Void

    /// What snapshots are made of and where they are kept.
    struct Setup: Sendable {
        /// The file they are made of.
        var source: @Sendable (_ isWanted: @escaping () -> Bool) throws -> SnapshotFile
        /// Has the writer take in what other programs wrote to that file.
        var settling: Settling
        /// The folder for this data set's snapshots.
        var folder: String
        var identity: String
        /// The schema's fingerprint.
        var schema: String
        /// The names of the parts a snapshot has.
        var parts: [String]
        var plan: SeedingPlan
        /// A snapshot is made after so many revisions.
        var every: Int64
        /// Where all the server's snapshots are made.
        var queue: DispatchQueue
        /// Runs what is to be done after a while.
        var later: Later
        var metrics: Metrics
        var log: ServerLog
        var name: String
        /// Hears of rows that are left out.
        var unsendable: UnsendableRows
    }

    /// Between a failure and the next try: the first pause, doubled by each failure that follows,
    /// and the longest.
    static let firstPause = 1
    static let longestPause = 60

    private struct State {
        /// By permission class; the newest first.
        var kept: [PermissionClass: [SnapshotManifest]] = [:]
        /// The revision at which making one was begun last; nil until what is on the disk was taken
        /// up.
        var begun: Revision?
        /// The newest revision heard of.
        var newest: Revision = 0
        /// How many tries have failed since one worked. While there are any, only time brings the
        /// next.
        var failures = 0
        var isMaking = false
        var isStopped = false
        var ended: [CheckedContinuation<Void, Never>] = []
    }

    private let setup: Setup
    private let filter: VisibilityFilter
    private let state = Mutex(State())

    init(_ setup: Setup, filter: VisibilityFilter = .everything) {
        self.setup = setup
        self.filter = filter
    }

    /// Takes up what is on the disk, removes what a killed process left there, and makes a snapshot
    /// where there is none that fits.
    /// - Parameter history: Makes, on the queue, what says whether a hash is that of the log's entry
    ///   of a revision.
    func start(
        at revision: Revision,
        history: @escaping @Sendable () -> (Revision, String) -> Bool
    ) {
        enqueue {
            let kept = try self.takeUp(history())
            let fits = kept.values.allSatisfy { manifests in
                guard let newest = manifests.first else { return false }
                return newest.schema == self.setup.schema
                    && newest.parts.map(\.name) == self.setup.parts
                    && revision - newest.revision < self.setup.every
            }
            let oldest = kept.values.map { $0.first?.revision ?? 0 }.min() ?? 0
            self.state.withLock { $0.begun = max(oldest, fits ? 0 : revision) }
            if !fits, revision > 0 { try self.make() }
        }
    }

    /// The data set has reached a revision.
    func reached(_ revision: Revision) {
        let isDue = state.withLock { state in
            state.newest = max(state.newest, revision)
            guard let begun = state.begun, !state.isMaking, state.failures == 0,
                revision - begun >= setup.every
            else { return false }
            state.begun = revision
            return true
        }
        if isDue { enqueue { try self.make() } }
    }

    /// Ends what is being made, and returns when that is over.
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

    /// The newest snapshot for a principal; nil where there is none yet.
    func manifest(for principal: Principal) -> SnapshotManifest? {
        let permissions = filter.permissionClass(of: principal)
        return state.withLock { $0.kept[permissions]?.first }
    }

    /// A file that one of the snapshots for a principal names.
    func file(
        _ hash: String, _ coding: SnapshotCoding, for principal: Principal
    ) -> (path: String, bytes: Int64)? {
        let permissions = filter.permissionClass(of: principal)
        let part = state.withLock { state in
            state.kept[permissions]?.lazy.flatMap(\.parts).first { $0.hash == hash }
        }
        guard let bytes = part?[coding: coding.rawValue]?.sum.bytes else { return nil }
        return (folder(permissions) + "/" + SnapshotFolder.file(hash, coding), bytes)
    }

    // MARK: - On the queue

    private var isWanted: Bool { state.withLock { !$0.isStopped } }

    private func folder(_ permissions: PermissionClass) -> String {
        setup.folder + "/" + permissions.name
    }

    private func enqueue(_ work: @escaping @Sendable () throws -> Void) {
        let isFree = state.withLock { state in
            guard !state.isMaking, !state.isStopped else { return false }
            state.isMaking = true
            return true
        }
        guard isFree else { return }
        setup.queue.async {
            var failure: (any Error)?
            do {
                if self.isWanted { try work() }
            } catch {
                // Where the server stops, what was begun is removed at the next start.
                if self.isWanted { failure = error }
            }
            let (ended, newest, failures) = self.state.withLock { state in
                state.isMaking = false
                state.failures = failure == nil ? 0 : state.failures + 1
                defer { state.ended.removeAll() }
                return (state.ended, state.newest, state.failures)
            }
            ended.forEach { $0.resume() }
            if let failure { self.tryAgain(work, after: failures, failure) }
            // Enough may have come meanwhile, and perhaps nothing comes after it.
            self.reached(newest)
        }
    }

    private func tryAgain(
        _ work: @escaping @Sendable () throws -> Void, after failures: Int, _ failure: any Error
    ) {
        let pause = min(Self.longestPause, Self.firstPause << min(failures - 1, 6))
        setup.metrics.countSnapshot(isMade: false)
        setup.log.log(
            .error, "snapshot",
            [
                ("dataSet", .text(setup.name)), ("reason", .text(String(describing: failure))),
                ("tries", .number(failures)), ("nextInSeconds", .number(pause)),
            ])
        setup.later(.seconds(pause)) { [weak self] in self?.enqueue(work) }
    }

    private func takeUp(
        _ isInHistory: (Revision, String) -> Bool
    ) throws -> [PermissionClass: [SnapshotManifest]] {
        var kept: [PermissionClass: [SnapshotManifest]] = [:]
        for permissions in filter.permissionClasses {
            let folder = try SnapshotFolder(path: folder(permissions))
            // A data set restored from a copy may have snapshots of what never was.
            kept[permissions] = try folder.keep(
                folder.manifests().filter {
                    $0.dataSet == setup.identity && isInHistory($0.revision, $0.lineage)
                })
        }
        state.withLock { $0.kept = kept }
        return kept
    }

    private func make() throws {
        state.withLock { $0.begun = max($0.begun ?? 0, $0.newest) }
        let source = try setup.source { self.isWanted }
        defer { source.remove() }
        for permissions in filter.permissionClasses {
            let folder = try SnapshotFolder(path: folder(permissions))
            let maker = SnapshotMaker(
                path: source.path, plan: setup.plan, filter: filter,
                unsendable: setup.unsendable, settling: setup.settling)
            let cut = try maker.make(for: permissions, while: { self.isWanted }) {
                folder.making($0)
            }
            let manifest = try folder.publish(cut) { isWanted }
            var all = state.withLock { $0.kept[permissions] ?? [] }
            all.removeAll { $0.revision == manifest.revision }
            let kept = Array(([manifest] + all).prefix(SnapshotFolder.generations))
            // Named first, then the others removed: a request never meets a file that is gone.
            state.withLock { $0.kept[permissions] = kept }
            _ = try folder.keep(kept)
            setup.metrics.countSnapshot(isMade: true)
            setup.log.log(
                .info, "snapshot",
                [
                    ("dataSet", .text(setup.name)), ("revision", .number(Int(manifest.revision))),
                    ("records", .number(Int(manifest.parts.reduce(0) { $0 + $1.records }))),
                ])
        }
    }
}
