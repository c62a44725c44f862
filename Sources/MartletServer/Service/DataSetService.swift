internal import Dispatch
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import SystemKit

/// One data set as the server runs it, with three workers: a writer, a reader and a watcher.
///
/// The reader answers what memory and the log can answer. Everything else goes through the queue to
/// the writer. The watcher looks for writes of other processes and programs. The workers share the
/// opened node, and announce new revisions with one publisher.
final class DataSetService: Sendable {
    typealias Response = Reader.Response

    /// The settings with which a data set is opened.
    struct Setup: Sendable {
        var backing: any DataSetBacking
        /// Returns the rules for the types; throws if they do not fit.
        var rules: @Sendable (Schema) throws -> DataSetRules
        var dependencyWaitSeconds: Int
        /// The number of newest entries that compaction leaves whole; nil if there is no
        /// compaction.
        var keepRevisions: Int64?
        /// The approximate memory for the newest entries, in bytes.
        var cacheBytes: Int
        /// Returns the time, in milliseconds since 1970.
        var now: @Sendable () -> Int64
        var snapshots: SnapshotService.Settings
        /// The timer for cheap checks of whether files have changed.
        var pulse: Pulse
        /// The Redis server, if there is one.
        var redis: RedisHub?
    }

    /// The answer to `GET /schema`.
    let schemaDocument: [UInt8]
    /// Announces every new revision.
    let signal: RevisionSignal
    /// The snapshots with which new devices of people who see everything begin.
    let snapshots: SnapshotService
    /// Those for people who see a part.
    private let viewSnapshots: ViewSnapshots
    private let opened: OpenNode
    private let publisher: CommitPublisher
    private let writer: Writer
    /// The queue of the requests that wait for the writer.
    private let queue: WriterQueue<Writer>
    private let watcher: Watcher
    private let reader: Reader

    /// Opens the data set, and creates everything that is missing.
    ///
    /// - Throws: `SchemaError` if the data set cannot be brought to the schema; `StorageFault`; the
    ///   errors of the backing.
    init(_ setup: Setup, _ reports: DataSetReports) async throws {
        let name = reports.dataSet
        let health = WriterHealth()
        opened = try await OpenNode(
            setup.backing, rules: setup.rules, cacheBytes: setup.cacheBytes, reports: reports,
            now: setup.now, committing: { health.commits($0) })
        let feed = opened.feed
        schemaDocument = SchemaDocument.bytes(
            opened.schema, ddl: opened.ddl, dataSet: opened.identity)
        signal = RevisionSignal(feed.head.revision)
        snapshots = SnapshotService(opened, setup.snapshots)
        viewSnapshots = ViewSnapshots(opened, setup.snapshots)
        publisher = CommitPublisher(
            feed: feed, signal: signal, snapshots: snapshots,
            outlet: try await opened.readers.outlet(of: feed, name: name),
            notices: DispatchQueue(label: "martlet.notices.\(name)"))
        writer = Writer(opened, publisher, health, keepRevisions: setup.keepRevisions)
        var limits = WriterQueue<Writer>.Limits()
        limits.dependencyWait = .seconds(setup.dependencyWaitSeconds)
        queue = WriterQueue(to: writer, on: opened.node.queue, limits: limits)
        watcher = try await Watcher(opened, writer, publisher, setup.pulse)
        watcher.start(setup.redis)
        reader = try await Reader(opened, queue, health)
        snapshots.start(at: feed.head.revision, bytes: feed.loggedBytes)
        viewSnapshots.start()
    }

    /// Finishes the accepted requests and closes the file. SQLite then writes its write-ahead log
    /// back.
    func stop() async {
        await watcher.stop()
        await stopSnapshots()
        await queue.stop()
        await publisher.outlet?.end()
        await reader.stop()
        await opened.node.end()
    }

    /// Ends the making of snapshots, and returns when it has ended.
    func stopSnapshots() async {
        await snapshots.stop()
        await viewSnapshots.stop()
    }

    // MARK: - For requests

    /// Returns the newest snapshot with which a person may begin; nil for none.
    ///
    /// - Parameter client: The person's device; nil if the request names none.
    /// - Throws: `Problem` if the snapshot is only for a device.
    func manifest(
        for person: Principal, _ client: String?
    ) async throws(Problem) -> (manifest: SnapshotManifest?, mayCome: Bool) {
        try await refuseOthers(client, person)
        guard !opened.feed.views.showsEverything(to: person) else {
            return (snapshots.manifest(), true)
        }
        guard client != nil else { throw Problem.unnamedDevice("noSnapshot") }
        return await viewSnapshots.manifest(for: person)
    }

    /// Returns the path and the size of a file of such a snapshot; nil if it has no such file.
    ///
    /// - Parameter client: The person's device, which counts as given what he may see; nil if the request
    ///   names none.
    /// - Throws: `Problem` if the device may not have the file.
    func snapshotFile(
        _ hash: String, _ coding: SnapshotCoding, for person: Principal, _ client: String?
    ) async throws(Problem) -> (path: String, bytes: Int64)? {
        try await refuseOthers(client, person)
        guard !opened.feed.views.showsEverything(to: person) else {
            let file = snapshots.file(hash, coding)
            if file != nil, let client { try await noteEverything(givenTo: client, of: person) }
            return file
        }
        guard let client else { throw Problem.unnamedDevice("noSnapshotFile") }
        return try await viewSnapshots.file(hash, coding, for: person, client)
    }

    /// Refuses a request that names another user's device. The download that a device began is nobody else's,
    /// also if the other user sees the same.
    private func refuseOthers(_ client: String?, _ person: Principal) async throws(Problem) {
        guard let client, opened.feed.views.program != nil,
            !opened.feed.isKnown(client, asDeviceOf: person)
        else { return }
        let problem = try await asking { [opened] node in
            try node.problem(naming: client, by: person, now: opened.now())
        }
        if let problem { throw problem }
    }

    private func noteEverything(
        givenTo client: String, of person: Principal
    ) async throws(Problem) {
        guard opened.feed.views.program != nil,
            !opened.feed.hasNoted(View.everything, givenTo: client, of: person)
        else { return }
        let problem = try await asking { [opened] node in
            try node.noteEverything(givenTo: client, of: person, now: opened.now())
        }
        if let problem { throw problem }
    }

    /// Returns the view of an earlier answer, with the newest revision at which its rest may be sent to a person;
    /// nil if it may not be sent.
    ///
    /// - Throws: `Problem` if the storage does not answer.
    func stillShows(
        _ view: AnsweredView, to person: Principal
    ) async throws(Problem) -> AnsweredView? {
        if opened.feed.views.showsEverything(to: person) { return view }
        if opened.feed.stillShows(view, to: person) { return view }
        return try await asking { [opened] node in
            try node.stillShows(view, to: person, now: opened.now())
        }
    }

    /// Asks the node, and counts the external writes that it takes into the log for it.
    private func asking<Answer: Sendable>(
        _ body: @escaping @Sendable (DataSetNode) throws -> Answer
    ) async throws(Problem) -> Answer {
        do {
            return try await opened.node.run { [opened] node in
                defer { opened.reports.metrics.countExternal(taken: node.takeExternalCount()) }
                return try body(node)
            }
        } catch let fault as StorageFault {
            opened.reports.report(fault)
            throw Problem.storage
        } catch {
            throw Problem.stopping
        }
    }

    /// Decides on a request's change sets, and answers the request.
    ///
    /// - Parameter claim: Takes the place in which the answer is made.
    func answer(_ request: AdmittedRequest, _ claim: AnswerClaim) async -> Response {
        await reader.answer(request, claim)
    }

    /// Returns the deltas after a cursor if they were just made for another listener, or nil
    /// otherwise. Takes only a moment.
    func madeDeltas(_ request: DeltaRequest) -> DeltaBatchBytes? { reader.madeDeltas(request) }

    /// Returns the deltas after a cursor.
    ///
    /// - Parameter claim: Takes the place in which they are made.
    func deltas(
        _ request: DeltaRequest, _ claim: AnswerClaim
    ) async -> Result<DeltaBatchBytes, Problem> {
        await reader.deltas(request, claim)
    }

    /// True if no change set was ever written.
    var isEmpty: Bool { opened.feed.head.revision == 0 }

    // MARK: - For operators

    /// The number of requests that wait for the writer.
    var queueDepth: Int { queue.depth }

    /// The reason why the data set cannot be served now. Nil if its storage answers, and the writes
    /// of other processes and programs are known.
    var unreadyReason: String? {
        watcher.silenceReason ?? writer.health.unreadyReason ?? watcher.unreadReason
    }

    /// The number of the data set's tables that another program keeps locked.
    var lockedTables: Int { watcher.lockedTables }

    /// True if a part of the data set cannot be served, and all the rest can.
    var isLimited: Bool { lockedTables > 0 || watcher.readsInPart }

    /// The time in seconds for which the writer has only failed.
    var writerBlocked: Double {
        let (seconds, attoseconds) = writer.health.blocked.components
        return Double(seconds) + Double(attoseconds) / 1e18
    }

    /// True if there is background work.
    var isAtWork: Bool { queue.depth > 0 || snapshots.isAtWork || viewSnapshots.isAtWork }

    /// Returns how far the service is behind other processes' and programs' writes.
    func followingState() async -> Watcher.FollowingState { await watcher.followingState() }
}
