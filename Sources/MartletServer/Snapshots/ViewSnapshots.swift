internal import Dispatch
internal import MartletEmbedded
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import Synchronization
internal import SystemKit

/// Keeps snapshots of the views of people who see a part of one data set.
///
/// All people with the same view share a snapshot. The service makes one in the background, if
/// people with the view have asked for it repeatedly and the view shows many records. A person may have
/// it if his view is that one now, and no record has left the view since. Everyone else begins with
/// rows. The snapshots do not outlive the process, which makes others.
final class ViewSnapshots: Sendable {
    /// The requests within `window` after which a snapshot is made.
    static let leastRequests = 2
    /// The milliseconds for which requests count, and after which a snapshot that nobody has asked for is
    /// removed.
    static let (window, longestUnused): (Int64, Int64) = (86_400_000, 7 * 86_400_000)
    /// The milliseconds for which no snapshot is made of a view whose snapshot is too large, and the least
    /// for which none is made after another, a failure, or the finding that the view shows few records.
    static let (longPause, shortPause): (Int64, Int64) = (3_600_000, 60_000)
    /// A view's snapshots take at most one part of the time of this many.
    static let sparing: Int64 = 20
    /// The most views whose requests are counted.
    private static let mostWishes = 10_000

    private struct Kept {
        let manifest: SnapshotManifest
        /// The count of the log's bytes when it was made.
        let logged: Int
        /// The time of the last request.
        var asked: Int64

        /// The bytes of its files.
        var bytes: Int64 {
            manifest.parts.reduce(0) { $1.codings.reduce($0) { $0 + $1.sum.bytes } }
        }
    }

    /// The requests for a snapshot of a view.
    private struct Wish {
        var since: Int64
        var requests = 0
        /// The time before which no snapshot is made.
        var notBefore: Int64 = .min
    }

    /// A view, with one of the people who have it.
    private struct Viewed {
        let name: String
        let number: Int64
        let person: Principal
    }

    private struct State {
        /// The snapshots by the names of the views.
        var kept: [String: Kept] = [:]
        var wishes: [String: Wish] = [:]
        var isMaking = false
        var isStopped = false
        var ended: [CheckedContinuation<Void, Never>] = []
    }

    private let opened: OpenNode
    private let settings: SnapshotService.Settings
    private let folder: String
    private let state = Mutex(State())

    init(_ opened: OpenNode, _ settings: SnapshotService.Settings) {
        (self.opened, self.settings) = (opened, settings)
        folder = settings.folder + "/views"
    }

    /// Removes the snapshots of an earlier process.
    func start() {
        run { try SnapshotFolder(path: self.folder).keep([]) }
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

    /// Returns the snapshot with which a person who sees a part may begin, or nil for none, and whether one
    /// may come if he asks again soon. The request counts, so that one may be made.
    func manifest(
        for person: Principal
    ) async -> (manifest: SnapshotManifest?, mayCome: Bool) {
        guard let claim = await claim(of: person) else { return (nil, settings.views.count > 0) }
        let manifest = granted(claim)
        let mayCome = wish(
            Viewed(name: claim.name, number: claim.view, person: person), has: manifest)
        return (manifest, mayCome)
    }

    /// Returns the path and the size of a file of the snapshot with which a person may begin; nil if it
    /// has no such file.
    ///
    /// - Parameter client: The person's device. It counts as given the view from now on.
    /// - Throws: `Problem` if it may not have the file.
    func file(
        _ hash: String, _ coding: SnapshotCoding, for person: Principal, _ client: String
    ) async throws(Problem) -> (path: String, bytes: Int64)? {
        let names = state.withLock { state in
            state.kept.values.contains { $0.manifest.file(hash, coding, in: folder) != nil }
        }
        guard names, let claim = await claim(of: person, for: client) else { return nil }
        if let problem = claim.problem { throw problem }
        return granted(claim)?.file(hash, coding, in: folder)
    }

    /// Returns the view that a person has now; nil if nobody knows it.
    private func claim(
        of person: Principal, for client: String? = nil
    ) async -> DataSetNode.SnapshotClaim? {
        guard settings.views.count > 0 else { return nil }
        let made = state.withLock { state in
            state.kept.mapValues {
                DataSetNode.ViewSnapshot(
                    revision: $0.manifest.revision, lineage: $0.manifest.lineage)
            }
        }
        do {
            return try await opened.node.run { [opened] node in
                defer { opened.reports.metrics.countExternal(taken: node.takeExternalCount()) }
                return try node.snapshotClaim(
                    of: person, for: client, among: made, now: opened.now())
            }
        } catch let fault as StorageFault {
            opened.reports.report(fault)
            return nil
        } catch {
            // The server stops.
            return nil
        }
    }

    /// Returns the snapshot that was granted, if its files are there.
    private func granted(_ claim: DataSetNode.SnapshotClaim) -> SnapshotManifest? {
        guard let revision = claim.granted?.revision else { return nil }
        let manifest = state.withLock { state -> SnapshotManifest? in
            // Another one may have been made meanwhile, which the person has no right to yet.
            guard let kept = state.kept[claim.name], kept.manifest.revision == revision
            else { return nil }
            state.kept[claim.name]?.asked = opened.now()
            return kept.manifest
        }
        guard let manifest, !SnapshotFolder.holds(manifest, in: folder) else { return manifest }
        state.withLock { $0.kept[claim.name] = nil }
        return nil
    }

    // MARK: - Making

    /// Counts a request, and makes a snapshot if there were enough.
    ///
    /// - Returns: False if none is made for a time, as of a view that shows few records.
    private func wish(_ view: Viewed, has manifest: SnapshotManifest?) -> Bool {
        let now = opened.now()
        let (head, logged) = (opened.feed.head.revision, opened.feed.loggedBytes)
        let (isDue, mayCome) = state.withLock { state in
            if let manifest, let kept = state.kept[view.name] {
                let isNew =
                    head - manifest.revision < settings.every
                    && logged - kept.logged < SnapshotService.worthwhileBytes(over: manifest)
                if isNew { return (false, true) }
            }
            if state.wishes.count >= Self.mostWishes { state.wishes = [:] }
            var wish = state.wishes[view.name] ?? Wish(since: now)
            if now - wish.since > Self.window { (wish.since, wish.requests) = (now, 0) }
            wish.requests += 1
            state.wishes[view.name] = wish
            let mayCome = now >= wish.notBefore
            return (mayCome && wish.requests >= Self.leastRequests, mayCome)
        }
        if isDue { run(for: view) { try self.make(view) } }
        return mayCome
    }

    private var isWanted: Bool { state.withLock { !$0.isStopped } }

    /// Runs work on the queue of all snapshots, unless some is under way.
    private func run(for view: Viewed? = nil, _ work: @escaping @Sendable () throws -> Void) {
        let isFree = state.withLock { state in
            guard !state.isMaking, !state.isStopped else { return false }
            state.isMaking = true
            return true
        }
        guard isFree else { return }
        settings.queue.async {
            do {
                if self.isWanted { try work() }
            } catch  where self.isWanted {
                if let view { self.pause(view, for: Self.shortPause) }
                self.opened.reports.metrics.countSnapshot(isMade: false)
                self.opened.reports.log(
                    .error, "snapshot",
                    [
                        ("reason", .text(String(describing: error))),
                        ("view", .number(Int(view?.number ?? 0))),
                    ])
            } catch {
                // If the server stops, the next start removes the unfinished files.
            }
            let ended = self.state.withLock { state in
                state.isMaking = false
                defer { state.ended.removeAll() }
                return state.ended
            }
            ended.forEach { $0.resume() }
        }
    }

    /// Begins to count the requests for a view again.
    private func pause(_ view: Viewed, for milliseconds: Int64) {
        let now = opened.now()
        state.withLock {
            $0.wishes[view.name] = Wish(since: now, notBefore: now + milliseconds)
        }
    }

    private func make(_ view: Viewed) throws {
        let begun = opened.now()
        let logged = opened.feed.loggedBytes
        let moment = ViewMoment(number: view.number) { [opened] (body) throws(StorageFault) in
            try opened.whenViewed(by: view.person, as: view.name, body)
        }
        let source = try opened.readers.snapshotFile(in: settings.folder, of: moment) {
            self.isWanted
        }
        defer { source.remove() }
        let folder = try SnapshotFolder(path: folder)
        let maker = SnapshotMaker(
            path: source.path, unsendable: opened.unsendable,
            consistently: source.isOneMoment ? nil : moment.reading,
            asksWriter: !source.isOneMoment)
        let cut = try maker.make(of: view.number, while: { self.isWanted }) { folder.making($0) }
        let records = cut.parts.reduce(0) { $1.records.reduce($0) { $0 + $1.count } }
        if records < settings.views.leastRecords {
            // The view may show more records soon.
            pause(view, for: max(Self.shortPause, Self.sparing * (opened.now() - begun)))
        } else {
            let manifest = try folder.publish(cut) { isWanted }
            let now = opened.now()
            let isKept = keep(Kept(manifest: manifest, logged: logged, asked: now), of: view.name)
            pause(
                view,
                for: isKept
                    ? max(Self.shortPause, Self.sparing * (now - begun)) : Self.longPause)
            opened.reports.reportSnapshot(manifest)
        }
        // No request meets a file that is gone, because no manifest names it any more.
        try folder.keep(state.withLock { $0.kept.values.map(\.manifest) }, most: .max)
    }

    /// Keeps a snapshot, and forgets those that nobody asked for lately, and as many as there is no room
    /// for.
    ///
    /// - Returns: False if there is no room for it alone.
    private func keep(_ made: Kept, of name: String) -> Bool {
        let limits = settings.views
        return state.withLock { state in
            state.kept = state.kept.filter { made.asked - $0.value.asked < Self.longestUnused }
            state.kept[name] = nil
            guard made.bytes <= limits.bytes else { return false }
            var others = state.kept.sorted { $0.value.asked < $1.value.asked }[...]
            while let oldest = others.first,
                others.count >= limits.count
                    || others.reduce(made.bytes, { $0 + $1.value.bytes }) > limits.bytes
            {
                state.kept[oldest.key] = nil
                others.removeFirst()
            }
            state.kept[name] = made
            return true
        }
    }
}
