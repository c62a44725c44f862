internal import Dispatch
internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import Synchronization
internal import SystemKit

/// Writes to one data set: it decides on batches of requests, takes external writes into the log,
/// and compacts the log.
///
/// A `WriterQueue` hands it the batches. All of its work runs on the node's queue.
final class Writer: BatchWriter {
    /// Tells whether the writer can write.
    let health: WriterHealth
    private let opened: OpenNode
    private let publisher: CommitPublisher
    /// The number of newest entries that compaction leaves whole; nil if there is no compaction.
    private let keepRevisions: Int64?
    private let cooldown = FailureCooldown()
    /// The rest of taking external writes after the tables were found to have changed.
    private let intakeCooldown = FailureCooldown()
    /// True if the writer is taking external writes into the log, or is about to.
    private let isTaking = Mutex(false)

    init(
        _ opened: OpenNode, _ publisher: CommitPublisher, _ health: WriterHealth,
        keepRevisions: Int64?
    ) {
        (self.opened, self.publisher, self.health) = (opened, publisher, health)
        self.keepRevisions = keepRevisions
    }

    // MARK: - For the queue

    func undecided(_ identifiers: [String]) -> [String] {
        (try? opened.node.here { $0.undecided(identifiers) }) ?? []
    }

    func write(_ requests: [AdmittedRequest]) -> [Result<NodeAnswer, Problem>] {
        guard !cooldown.isOn else { return requests.map { _ in .failure(.storage) } }
        let sets = requests.reduce(0) { $0 + $1.setCount }
        if sets > 0 { opened.reports.metrics.countBatch(sets: sets) }
        do {
            let start = ContinuousClock.now
            let results = try opened.node.here { node in
                defer { countExternal(of: node) }
                return node.decide(requests, now: opened.now())
            }
            publisher.reached(opened.feed.head.revision, isOurs: true)
            note(try opened.node.here { $0.takeFault() }, of: start)
            return results
        } catch {
            return requests.map { _ in .failure(.stopping) }
        }
    }

    /// Notes how a batch went that began at `start`.
    private func note(_ fault: StorageFault?, of start: ContinuousClock.Instant) {
        guard let fault else { return health.worked() }
        if fault.kind == .unreachable { cooldown.begin(after: ContinuousClock.now - start) }
        // A fault in one device's sets does not keep other devices from writing.
        if fault.kind == .refused {
            health.worked()
        } else {
            health.failed(fault.kind)
        }
        opened.reports.report(fault)
    }

    /// Empties some old entries in one transaction, and returns true if there are more.
    func stepInBackground() -> Bool {
        guard let newest = keepRevisions else { return false }
        let worthwhile = min(Int64(DataSetNode.entriesPerStep), max(1, newest / 4))
        let isDue = try? opened.node.here { node in
            guard node.compactable(keeping: newest) >= worthwhile || node.hasUnusedViews else {
                return false
            }
            let step = node.compact(keeping: newest)
            opened.reports.metrics.countCompaction(emptied: step.emptied)
            guard let fault = node.takeFault() else { return !step.isDone }
            // The next commit leads to another try.
            opened.reports.report(fault)
            return false
        }
        return isDue ?? false
    }

    // MARK: - External writes

    /// Begins to take external writes into the log, unless that is under way. It takes steps
    /// between the batches.
    ///
    /// If several processes serve the data set, the counter row decides: the process that holds it
    /// takes all waiting writes, and the next one finds none.
    func takeExternalWrites() {
        guard !intakeCooldown.isOn else { return }
        let isFirst = isTaking.withLock { isTaking in
            defer { isTaking = true }
            return !isTaking
        }
        if isFirst { opened.node.queue.async { self.takeSteps() } }
    }

    private func takeSteps() {
        if takeStep() {
            // The next step goes behind the requests that reached the writer meanwhile.
            opened.node.queue.async { self.takeSteps() }
        } else {
            isTaking.withLock { $0 = false }
        }
    }

    /// Takes external writes into the log, in one step.
    ///
    /// - Returns: True if there may be more.
    private func takeStep() -> Bool {
        let before = opened.feed.head.revision
        let more = try? opened.node.here { node in
            // The next look finds the writes that cannot be taken now.
            let more =
                node.takeExternalWrites(now: opened.now()) && opened.feed.head.revision > before
            countExternal(of: node)
            guard let fault = node.takeFault() else { return more }
            opened.reports.report(fault)
            // Every look would begin it again until the data set is reopened.
            if fault.kind == .changed { intakeCooldown.begin(after: .seconds(1)) }
            return false
        }
        publisher.reached(opened.feed.head.revision, isOurs: true)
        return more ?? false
    }

    private func countExternal(of node: DataSetNode) {
        opened.reports.metrics.countExternal(taken: node.takeExternalCount())
    }
}

extension AdmittedRequest: QueuedRequest {
    var setCount: Int { request.changeSets.count }

    var identifiers: [String] { request.changeSets.compactMap(\.identifier) }

    var party: String { principal.identity }

    var dependencies: [String] {
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
}
