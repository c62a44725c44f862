internal import Dispatch
internal import MartletEmbedded
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import Synchronization
internal import SystemKit

/// One data set as the server runs it: a writer with its queue, and a reader beside it.
///
/// Pulls are answered from memory on the caller's thread, from the reader where memory lacks
/// something; everything else goes through the writer.
final class DataSetService: Sendable {
    typealias Verdict = Result<PreparedAnswer, Problem>

    /// What a data set is opened with.
    struct Setup: Sendable {
        var backing: any DataSetBacking
        /// Who may do what with these types; throws where the rules do not fit them.
        var rules: @Sendable (Schema) throws -> Rules
        var dependencyWaitSeconds: Int
        /// How many of the newest entries compaction leaves whole; nil where there is none.
        var keepRevisions: Int64?
        /// Memory for the newest entries, about.
        var cacheBytes: Int
        /// Milliseconds since 1970.
        var now: @Sendable () -> Int64
        var metrics: Metrics
        var log: ServerLog
        var snapshots: Snapshots
        /// Says when to check whether files have changed.
        var pulse: Pulse
        /// Redis, where there is one.
        var redis: RedisHub?
        /// Called, more than once, when the tables are others than those that were opened.
        var changed: @Sendable () -> Void
    }

    /// How snapshots are made.
    struct Snapshots: Sendable {
        /// The folder for those of this data set.
        var folder: String
        var plan: SeedingPlan
        /// One is made after so many revisions.
        var every: Int64
        /// Where all the server's snapshots are made.
        var queue: DispatchQueue
        /// Runs what is to be done after a while.
        var later: Scheduler
    }

    /// The answer to `GET /schema`.
    let schemaDocument: [UInt8]
    /// Tells of every new revision.
    let signal: RevisionSignal
    /// What a new device begins with.
    let snapshots: SnapshotService
    private let feed: DataSetFeed
    private let metrics: Metrics
    private let writer: Confined<DataSetNode>
    private let reader: Confined<LogReader>
    /// A reader of its own for comparisons, which read whole tables: nobody else waits for them.
    private let comparer: Confined<LogReader>
    private let comparisons = ComparisonRoom()
    /// For answers from memory, and for those that wait for the log's one reader. Each data set has its own, so
    /// that a slow storage keeps only its own requests waiting, and none that memory can answer.
    private let (memoryRoom, logRoom) = (AnswerRoom(), AnswerRoom())
    private let queue: WriterQueue<AdmittedRequest, NodeAnswer>
    private let announcer: CommitPublisher
    private let health: WriterHealth
    /// What brings what others write.
    private let following: Following

    /// Opens the data set, making what is missing.
    /// - Throws: `SchemaError` where it cannot be brought to the schema; `StorageFault`; what the
    ///   backing throws.
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
        // Connecting to a database takes longer than most answers do.
        if opened.readers.isRemote {
            Task { [reader] in try? await reader.run { _ = try $0.catchUp() } }
        }
        snapshots.start(at: opened.feed.head.revision, bytes: opened.feed.loggedBytes) {
            [readers = opened.readers] in
            // Where the log cannot be read, nothing is in it.
            let log = readers.log()
            return .init(
                has: { (try? log.hash(at: $0))??.text == $1 },
                bytes: { first, last, limit in
                    let entries = try? log.entries(from: first, through: last, maxBytes: limit)
                    return entries?.reduce(0) { $0 + $1.body.count } ?? 0
                })
        }
    }

    /// Whether nothing was ever written.
    var isEmpty: Bool { feed.head.revision == 0 }

    /// What the writer's thread leaves behind of the opening.
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

    /// Counts rows that are left out, and names each once to the operator.
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
                        // A fault in one device's sets does not keep the others from writing.
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

    /// Empties old entries in steps, each worth a transaction of its own.
    /// - Returns: Does one step, and says whether another is due.
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
                // Tried again after the next commit.
                report(fault, of: name, setup)
                return false
            }
            return isDue ?? false
        }
    }

    /// The sets a request's sets depend on, those before them in the request left out.
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

    /// Requests that wait for the writer.
    var queueDepth: Int { queue.depth }

    /// Why the data set cannot be served just now; nil where it can: its storage answers, and what
    /// others wrote is known.
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

    /// How many of the data set's tables another program keeps locked.
    var lockedTables: Int { following.locked.count }

    /// Whether some of it cannot be served while all the rest is.
    var isLimited: Bool { lockedTables > 0 || following.reading?.isLimited == true }

    /// How long the writer has done nothing but fail, in seconds.
    var writerBlocked: Double {
        let (seconds, attoseconds) = health.blocked.components
        return Double(seconds) + Double(attoseconds) / 1e18
    }

    /// Whether there is background work under way.
    var isAtWork: Bool { queue.depth > 0 || snapshots.isAtWork }

    /// How the data set fares that others write to.
    func followingState(_ name: String) async -> FollowingState {
        let age = following.follower.age
        let (seconds, attoseconds) = age.components
        // A storage that does not answer would hold up whoever asks for metrics.
        let account =
            age < .seconds(3) ? try? await following.lookout.run { try $0.watch.account() } : nil
        return FollowingState(
            dataSet: name, lag: Double(seconds) + Double(attoseconds) / 1e18, account: account)
    }

    /// Decides on what a request brings, and answers it.
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

    /// The deltas after a cursor where they were just made for another listener; nil where there is
    /// work to do. Takes a moment only.
    func madeDeltas(_ question: DeltaRequest) -> DeltaBatchBytes? { feed.madeDeltas(question) }

    /// The deltas after a cursor.
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
        // Another answer may be made while the writer decides.
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
        // Comparisons have a room of their own, and wait in it for each other.
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

    /// Finishes what was accepted and closes the file; SQLite then writes its log back.
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
