internal import Dispatch
internal import MartletEmbedded
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import Synchronization
internal import SystemKit

/// One data set as the server runs it: a writer with its queue, and readers next to it.
///
/// The service answers pulls from memory on the caller's thread, or with the reader if memory lacks
/// something. Everything else goes through the writer.
final class DataSetService: Sendable {
    typealias Verdict = Result<PreparedAnswer, Problem>

    /// The settings with which a data set is opened.
    struct Setup: Sendable {
        var backing: any DataSetBacking
        /// Returns the rules for the types; throws if they do not fit.
        var rules: @Sendable (Schema) throws -> Rules
        var dependencyWaitSeconds: Int
        /// The number of newest entries that compaction leaves whole; nil if there is no
        /// compaction.
        var keepRevisions: Int64?
        /// The approximate memory for the newest entries, in bytes.
        var cacheBytes: Int
        /// Returns the time, in milliseconds since 1970.
        var now: @Sendable () -> Int64
        var metrics: Metrics
        var log: ServerLog
        var snapshots: Snapshots
        /// The timer for cheap checks of whether files have changed.
        var pulse: Pulse
        /// The Redis server, if there is one.
        var redis: RedisHub?
        /// Called, perhaps more than once, when the tables differ from those that were opened.
        var changed: @Sendable () -> Void
    }

    /// The settings for making snapshots.
    struct Snapshots: Sendable {
        /// The folder for the snapshots of this data set.
        var folder: String
        var plan: SeedingPlan
        /// The number of revisions after which a snapshot is made.
        var every: Int64
        /// The queue on which all of the server's snapshots are made.
        var queue: DispatchQueue
        /// Runs a retry after a pause.
        var later: Scheduler
    }

    /// The answer to `GET /schema`.
    let schemaDocument: [UInt8]
    /// Announces every new revision.
    let signal: RevisionSignal
    /// The snapshots with which new devices begin.
    let snapshots: SnapshotService
    private let feed: DataSetFeed
    private let metrics: Metrics
    private let writer: Confined<DataSetNode>
    private let reader: Confined<LogReader>
    /// A separate reader for comparisons, which read whole tables, so that no other request waits
    /// for them.
    private let comparer: Confined<LogReader>
    private let comparisons = ComparisonRoom()
    /// The rooms for answers from memory, and for answers that wait for the log's one reader.
    ///
    /// Each data set has its own, so that a slow storage delays only its own requests, and none
    /// that memory can answer.
    private let (memoryRoom, logRoom) = (AnswerRoom(), AnswerRoom())
    private let queue: WriterQueue<AdmittedRequest, NodeAnswer>
    private let announcer: CommitPublisher
    private let health: WriterHealth
    /// The follower of other processes' and programs' writes.
    private let following: Following

    /// Opens the data set, and creates everything that is missing.
    ///
    /// - Throws: `SchemaError` if the data set cannot be brought to the schema; `StorageFault`; the
    ///   errors of the backing.
    init(name: String, setup: Setup) async throws {
        metrics = setup.metrics
        let unsendable = Self.unsendable(name, setup)
        let opening = Mutex<Opening?>(nil)
        let health = WriterHealth()
        self.health = health
        let writer = try await Confined.making(label: "martlet.writer.\(name)") {
            let opened = try setup.backing.open(now: setup.now(), unsendable: unsendable)
            let node = try DataSetNode(
                storage: opened.storage, log: opened.log,
                rules: try setup.rules(opened.storage.schema), filter: .everything,
                cacheBytes: setup.cacheBytes)
            node.committing = { health.commits($0) }
            opening.withLock { $0 = Opening(node, opened) }
            return node
        }
        guard let opened = opening.withLock({ $0 }) else {
            preconditionFailure("a writer that was made has been opened")
        }
        self.writer = writer
        feed = opened.feed
        signal = RevisionSignal(opened.feed.head.revision)
        schemaDocument = opened.schemaDocument
        let consistently = Self.consistently(name, writer, setup)
        let makeReader: @Sendable () -> LogReader = {
            LogReader(
                feed: opened.feed, log: opened.readers.log(), check: opened.readers.check(),
                consistently: consistently)
        }
        reader = try await Confined.making(label: "martlet.reader.\(name)") { makeReader() }
        comparer = try await Confined.making(label: "martlet.comparer.\(name)") { makeReader() }
        snapshots = SnapshotService(opened.snapshots(name, setup, unsendable, consistently))
        announcer = CommitPublisher(
            feed: opened.feed, signal: signal, snapshots: snapshots,
            outlet: try await opened.readers.outlet(of: opened.feed, name: name),
            notices: DispatchQueue(label: "martlet.notices.\(name)"))
        var limits = WriterQueue<AdmittedRequest, NodeAnswer>.Limits()
        limits.dependencyWait = .seconds(setup.dependencyWaitSeconds)
        queue = WriterQueue(
            queue: writer.queue, limits: limits,
            work: Self.work(name, writer, opened.feed, announcer, health, setup))
        following = try await Self.follow(name, opened, writer, announcer, health, setup)
        // To connect to a database takes longer than most answers do.
        if opened.readers.isRemote {
            Task { [reader] in try? await reader.run { _ = try $0.catchUp() } }
        }
        snapshots.start(at: opened.feed.head.revision, bytes: opened.feed.loggedBytes) {
            [readers = opened.readers] in
            // If the log cannot be read, it counts as empty.
            let log = readers.log()
            return .init(
                has: { (try? log.hash(at: $0))??.text == $1 },
                bytes: { first, last, limit in
                    let entries = try? log.entries(from: first, through: last, maxBytes: limit)
                    return entries?.reduce(0) { $0 + $1.body.count } ?? 0
                })
        }
    }

    /// True if no change set was ever written.
    var isEmpty: Bool { feed.head.revision == 0 }

    /// The parts of an opened data set that leave the writer's thread.
    struct Opening: Sendable {
        let feed: DataSetFeed
        let schemaDocument: [UInt8]
        let readers: any DataSetReaders
        let identity: String
        let schema: Schema
        let tables: Int64

        init(_ node: DataSetNode, _ opened: OpenedDataSet) {
            feed = node.feed
            readers = opened.readers
            identity = node.identity
            schema = node.schema
            tables = opened.tables
            schemaDocument = SchemaDocument.bytes(
                node.schema, ddl: opened.ddl, dataSet: node.identity)
        }

        func snapshots(
            _ name: String, _ setup: Setup, _ unsendable: UnsendableRows,
            _ consistently: @escaping SnapshotService.ConsistentReading
        ) -> SnapshotService.Setup {
            let plan = setup.snapshots.plan
            let folder = setup.snapshots.folder
            return .init(
                source: { [readers] in try readers.snapshotFile(in: folder, while: $0) },
                consistently: consistently,
                folder: folder, identity: identity, schema: schema.fingerprint,
                parts: plan.parts(of: schema), plan: plan, every: setup.snapshots.every,
                queue: setup.snapshots.queue, later: setup.snapshots.later, metrics: setup.metrics,
                log: setup.log, name: name,
                unsendable: unsendable)
        }
    }

    /// Counts rows that are left out, and logs each of them once.
    private static func unsendable(_ name: String, _ setup: Setup) -> UnsendableRows {
        UnsendableRows { row, isNew in
            setup.metrics.countRowLeftOut()
            guard isNew else { return }
            setup.log.log(
                .warning, "unsendable",
                [
                    ("dataSet", .text(name)), ("type", .text(row.type)),
                    ("record", .text(row.id.description)), ("reason", .text(row.reason)),
                    ("remedy", .text("Correct the row; devices keep what they have of it.")),
                ])
        }
    }

    private static func work(
        _ name: String, _ writer: Confined<DataSetNode>, _ feed: DataSetFeed,
        _ announcer: CommitPublisher, _ health: WriterHealth, _ setup: Setup
    ) -> WriterQueue<AdmittedRequest, NodeAnswer>.Work {
        let rest = FailureCooldown()
        return .init(
            setCount: { $0.request.changeSets.count },
            dependencies: { dependencies(of: $0.request) },
            identifiers: { $0.request.changeSets.compactMap(\.identifier) },
            party: { $0.principal.identity },
            undecided: { identifiers, _ in
                (try? writer.here { $0.undecided(identifiers) }) ?? []
            },
            process: { requests in
                guard !rest.isOn else { return requests.map { _ in .failure(.storage) } }
                let sets = requests.reduce(0) { $0 + $1.request.changeSets.count }
                if sets > 0 { setup.metrics.countBatch(sets: sets) }
                do {
                    let start = ContinuousClock.now
                    let results = try writer.here { node in
                        defer { setup.metrics.countExternal(taken: node.takeExternalCount()) }
                        return node.decide(requests, now: setup.now())
                    }
                    announcer.reached(feed.head.revision, isOurs: true)
                    if let fault = try writer.here({ $0.takeFault() }) {
                        if fault.kind == .unreachable {
                            rest.begin(after: ContinuousClock.now - start)
                        }
                        // A fault in one device's sets does not keep other devices from writing.
                        if fault.kind == .refused {
                            health.worked()
                        } else {
                            health.failed(fault.kind)
                        }
                        report(fault, of: name, setup)
                    } else {
                        health.worked()
                    }
                    return results
                } catch {
                    return requests.map { _ in .failure(.stopping) }
                }
            }, rest: setup.keepRevisions.map { compaction(name, writer, keeping: $0, setup) })
    }

    /// Returns a function that empties some old entries in one transaction, and returns true if
    /// there are more.
    private static func compaction(
        _ name: String, _ writer: Confined<DataSetNode>, keeping newest: Int64, _ setup: Setup
    ) -> @Sendable () -> Bool {
        let worthwhile = min(Int64(DataSetNode.entriesPerStep), max(1, newest / 4))
        return {
            let isDue = try? writer.here { node in
                guard node.compactable(keeping: newest) >= worthwhile else { return false }
                let step = node.compact(keeping: newest)
                setup.metrics.countCompaction(emptied: step.emptied)
                guard let fault = node.takeFault() else { return !step.isDone }
                // The next commit leads to another try.
                report(fault, of: name, setup)
                return false
            }
            return isDue ?? false
        }
    }

    /// Returns the sets that a request's sets depend on, without those that precede them in the
    /// request.
    private static func dependencies(of request: SyncRequest) -> [String] {
        var before: Set<String> = []
        var found: [String] = []
        for set in request.changeSets {
            if let needed = set.dependencyIdentifier, !before.contains(needed), !set.needsItself {
                found.append(needed)
            }
            if let identifier = set.identifier { before.insert(identifier) }
        }
        return found
    }

    /// The number of requests that wait for the writer.
    var queueDepth: Int { queue.depth }

    /// The reason why the data set cannot be served now. Nil if its storage answers, and the writes
    /// of other processes and programs are known.
    var unreadyReason: String? {
        let age = following.follower.age
        guard age < .seconds(3) else {
            return "its storage has not answered for \(age.components.seconds) s"
        }
        if let wait = health.commitWait { return Self.waits(for: wait) }
        return health.isHindered
            ? "nothing could be written for \(health.blocked.components.seconds) s"
            : following.reading?.unreadyReason
    }

    /// The number of the data set's tables that another program keeps locked.
    var lockedTables: Int { following.locked.count }

    /// True if a part of the data set cannot be served, and all the rest can.
    var isLimited: Bool { lockedTables > 0 || following.reading?.isLimited == true }

    /// The time in seconds for which the writer has only failed.
    var writerBlocked: Double {
        let (seconds, attoseconds) = health.blocked.components
        return Double(seconds) + Double(attoseconds) / 1e18
    }

    /// True if there is background work.
    var isAtWork: Bool { queue.depth > 0 || snapshots.isAtWork }

    /// Returns how far the service is behind other processes' and programs' writes.
    func followingState(_ name: String) async -> FollowingState {
        let age = following.follower.age
        let (seconds, attoseconds) = age.components
        // A storage that does not answer would delay the answer with the metrics.
        let account =
            age < .seconds(3) ? try? await following.lookout.run { try $0.watch.account() } : nil
        return FollowingState(
            dataSet: name, lag: Double(seconds) + Double(attoseconds) / 1e18, account: account)
    }

    /// Decides on a request's change sets, and answers the request.
    ///
    /// - Parameter claim: Takes the place in which the answer is made.
    func answer(_ request: AdmittedRequest, _ claim: AnswerClaim) async -> Verdict {
        guard request.request.changeSets.isEmpty else { return await decide(request, claim) }
        do { try await claim.take(in: memoryRoom) } catch { return .failure(.gone) }
        switch feed.answer(to: request) {
        case .answer(let answer):
            metrics.countPull(isHit: true)
            return .success(answer)
        case .problem(let problem): return .failure(problem)
        case .needsNode: return await decide(request, claim)
        case .needsLog:
            metrics.countPull(isHit: false)
            return await read(request, claim)
        }
    }

    /// Returns the deltas after a cursor if they were just made for another listener, or nil
    /// otherwise. Takes only a moment.
    func madeDeltas(_ question: DeltaRequest) -> DeltaBatchBytes? { feed.madeDeltas(question) }

    /// Returns the deltas after a cursor.
    ///
    /// - Parameter claim: Takes the place in which they are made.
    func deltas(
        _ question: DeltaRequest, _ claim: AnswerClaim
    ) async -> Result<DeltaBatchBytes, Problem> {
        do { try await claim.take(in: memoryRoom) } catch { return .failure(.gone) }
        let result = await batch(question, claim)
        if case .success(let batch) = result, batch.isDifference { metrics.countDifference() }
        return result
    }

    private func batch(
        _ question: DeltaRequest, _ claim: AnswerClaim
    ) async -> Result<DeltaBatchBytes, Problem> {
        switch feed.deltas(question) {
        case .batch(let batch): return .success(batch)
        case .problem(let problem): return .failure(problem)
        case .needsLog: break
        }
        guard !health.isMoved else { return .failure(.storage) }
        do { try await claim.take(in: logRoom) } catch { return .failure(.gone) }
        do {
            switch try await reader.run({ $0.deltas(question) }) {
            case .batch(let batch): return .success(batch)
            case .problem(let problem): return .failure(problem)
            case .needsLog: return .failure(.storage)
            }
        } catch {
            return .failure(.stopping)
        }
    }

    private func decide(_ request: AdmittedRequest, _ claim: AnswerClaim) async -> Verdict {
        // Another answer may use the place while the writer decides.
        claim.giveBack()
        switch await queue.submit(request) {
        case .success(.made(let answer)): return .success(answer)
        case .failure(let problem): return .failure(problem)
        case .success(.unread(let unread)):
            do { try await claim.take(in: logRoom) } catch { return .failure(.gone) }
            do {
                return try await reader.run { $0.answer(unread) }
            } catch {
                return .failure(.stopping)
            }
        }
    }

    private func read(_ request: AdmittedRequest, _ claim: AnswerClaim) async -> Verdict {
        guard request.request.check != nil else {
            do { try await claim.take(in: logRoom) } catch { return .failure(.gone) }
            return await read(request, with: reader, claim)
        }
        // Comparisons have a room of their own, in which they wait for each other.
        claim.giveBack()
        let user = request.principal.identity
        let verdict = await comparisons.run(user: user, device: request.request.clientID ?? "") {
            await read(request, with: comparer, claim)
        }
        return verdict
            ?? .failure(.busy("Comparisons are under way for the device or its user; try again."))
    }

    private func read(
        _ request: AdmittedRequest, with reader: Confined<LogReader>, _ claim: AnswerClaim
    ) async -> Verdict {
        guard !health.isMoved else { return .failure(.storage) }
        do {
            switch try await reader.run({ $0.answer(to: request) }) {
            case .answer(let answer): return .success(answer)
            case .problem(let problem): return .failure(problem)
            case .needsNode, .needsLog: return await decide(request, claim)
            }
        } catch {
            return .failure(.stopping)
        }
    }

    /// Finishes the accepted requests and closes the file. SQLite then writes its write-ahead log
    /// back.
    func stop() async {
        await following.stop()
        await snapshots.stop()
        await queue.stop()
        await announcer.outlet?.end()
        await reader.end()
        await comparer.end()
        await writer.end()
    }
}
