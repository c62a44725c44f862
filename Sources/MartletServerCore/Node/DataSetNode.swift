package import MartletModel
package import MartletProtocol
package import MartletRules
import OpenSSLKit

/// The one writer of a data set. It decides on change sets and makes the answers.
///
/// It is synchronous, and has no clock, sockets or randomness, so the same calls give the same
/// answers. It is confined to the queue of its holder, and blocks while it works. On any other
/// thread, `feed` can answer pulls meanwhile.
package final class DataSetNode {
    /// The best number of change sets for one call of `process`. The sets of one request stay
    /// together, even if that makes more.
    package static let setsPerBatch = 32

    /// The rules for the roles of users. A change takes effect with the next batch.
    package var rules: Rules { didSet { feed.rules.set(policies, rules) } }
    /// The policies that say who may see and change which rows; nil if the data set has none. A change
    /// takes effect with the next batch.
    package var policies: RulesProgram? {
        didSet {
            guard policies?.text != oldValue?.text else { return }
            feed.views.program = policies
            feed.rules.set(policies, rules)
            viewIndex.reset()
        }
    }
    /// The most devices of a user. There is a limit because invented devices would stay for ever.
    package var devicesPerUser = 10_000
    /// The share of a request that is decided at a time.
    package var share = SetMeasure.Share()
    /// The feed, which answers pulls from memory.
    package let feed: DataSetFeed
    /// The approximate bytes of external changes that one batch takes along.
    static let externalBytes = 1 << 20

    let storage: any ServerStorage
    let log: any LogSource
    /// Tells whose views a change concerns.
    let viewIndex = ViewIndex()
    /// Called when a commit begins (true), and when it has ended (false).
    package var committing: (Bool) -> Void = { _ in }
    var needsRecovery = false
    /// True if compaction has found views that it has yet to remove.
    package internal(set) var hasUnusedViews = false
    var fault: StorageFault?
    /// The numbers of entries made from external writes: in the open transaction, and since
    /// `takeExternalCount()`.
    var external = (open: 0, committed: 0)
    /// The part of `DataSetFeed.otherLogCount` after which views were retired: in the open transaction, and
    /// for good.
    var otherLogs = (open: 0, committed: 0)
    /// The time of the last call, in milliseconds since 1970.
    var lastTime: Int64 = 0

    /// Makes the node of a storage, and reads the newest entries of its log into memory.
    ///
    /// - Throws: `StorageFault` if the log cannot be read.
    package init(
        storage: any ServerStorage, log: any LogSource, rules: Rules,
        cacheBytes: Int, answerBytes: Int = Limits.answerBytes, partBytes: Int = 64 << 10
    ) throws(StorageFault) {
        LimitRelation.check()
        self.storage = storage
        self.log = log
        self.rules = rules
        let head = storage.head
        let warm = max(storage.floor, head.revision - 2 * LogCache.blockEntries)
        let base = try log.hash(at: warm) ?? LineageHash(origin: storage.identity)
        let cache = LogCache(
            head: LogHead(revision: warm, hash: base), floor: storage.floor,
            byteLimit: cacheBytes)
        var reached = warm
        while reached < head.revision {
            let entries = try log.entries(
                from: reached + 1, through: head.revision, maxBytes: 1 << 20)
            guard let last = entries.last else { break }
            cache.append(entries)
            reached = last.revision
        }
        log.release()
        feed = DataSetFeed(
            cache: cache, deltaBytes: min(4 << 20, cacheBytes / 4), identity: storage.identity,
            schema: storage.schema, answerBytes: answerBytes, partBytes: partBytes,
            isShared: storage.isShared)
        feed.rules.set(nil, rules)
        log.consistently = { [weak self] (body) throws(StorageFault) in
            guard let self else { throw StorageFault(.failed, "the node is gone") }
            try whenCaughtUp(body)
        }
    }

    /// The data set's schema.
    package var schema: Schema { storage.schema }
    /// The data set's identity.
    package var identity: String { storage.identity }
    /// The newest committed revision and its hash.
    package var head: LogHead { feed.head }

    /// Decides on the change sets of a batch of requests, in order and in one transaction, and
    /// answers each request.
    ///
    /// If the transaction cannot be committed, each request gets a problem of status 503 and
    /// nothing has changed. The node can be used again.
    ///
    /// - Parameter now: Milliseconds since 1970.
    /// - Returns: One result for each request, in order.
    package func process(
        _ requests: [AdmittedRequest], now: Int64
    ) -> [Result<PreparedAnswer, Problem>] {
        decide(requests, now: now).map { decision in
            switch decision {
            case .success(.made(let answer)): .success(answer)
            case .success(.unread(let unread)): unread.answer(from: feed.builder(log: log))
            case .failure(let problem): .failure(problem)
            }
        }
    }

    /// Decides like `process`, but reads no part of the log that is not in memory. It returns
    /// answers that need the log for `LogReader.answer(_:)` to finish, so that devices that are far
    /// behind do not delay the writer.
    package func decide(
        _ requests: [AdmittedRequest], now: Int64
    ) -> [Result<NodeAnswer, Problem>] {
        decide(requests, now: now, leavingOut: nil)
    }

    /// Decides on requests, and puts some sets off.
    ///
    /// - Parameter unbearable: The positions of the sets that are put off without a try, of a
    ///   single request; nil if no search was made.
    func decide(
        _ requests: [AdmittedRequest], now: Int64, leavingOut unbearable: Set<Int>?
    ) -> [Result<NodeAnswer, Problem>] {
        lastTime = now
        // One round finds each set that rolls back everything (two for the first), and the next
        // round refuses it.
        var rounds = 2 + requests.reduce(0) { $0 + $1.request.changeSets.count }
        while true {
            do throws(StorageFault) {
                if needsRecovery { try recover() }
                let results = try attempt(requests, now: now, leavingOut: unbearable ?? [])
                // A search for a set at fault would take any fault for that set's.
                if unbearable == nil, let trouble = storage.takeTrouble() { fault = trouble }
                return results
            } catch {
                needsRecovery = true
                rounds -= 1
                if error.kind == .rolledBack, rounds > 0 { continue }
                if error.kind == .refused, requests.count > 1 {
                    // One request must not keep the others out.
                    return requests.flatMap { decide([$0], now: now) }
                }
                if error.kind == .refused, unbearable == nil, let request = requests.first,
                    !request.request.changeSets.isEmpty
                {
                    return decideApart(request, refused: error, now: now)
                }
                // The node recovers now, so that a reader next to it sees no open transaction. If
                // that fails, the next batch tries again.
                let found = faultAfterRecovery(from: error)
                fault = found
                let problem = RequestCheck.problem(for: found)
                return requests.map { request in
                    guard found.kind == .full, request.request.changeSets.isEmpty else {
                        return .failure(problem)
                    }
                    // The other requests may be what there was no room for.
                    if requests.count > 1 { return decide([request], now: now)[0] }
                    return reading(request, now: now) ?? .failure(problem)
                }
            }
        }
    }

    /// Answers a request without change sets, and without writing, after it found no room.
    ///
    /// - Returns: Nil if the storage does not answer, or has to note something before its user may be
    ///   answered.
    private func reading(
        _ request: AdmittedRequest, now: Int64
    ) -> Result<NodeAnswer, Problem>? {
        guard !needsRecovery else { return nil }
        do throws(StorageFault) {
            guard feed.sight(of: request) == .everything else {
                var bare = request.request
                (bare.acknowledged, bare.purged) = (nil, nil)
                let alone = AdmittedRequest(
                    principal: request.principal, request: bare, source: request.source,
                    acceptsGzip: request.acceptsGzip)
                return try attempt([alone], now: now, leavingOut: [])[0]
            }
            let names = request.request.clientID.map { [$0] } ?? []
            let known = try storage.devices(named: names)
            feed.learn(known)
            let numbers = known.values.map(\.number)
            let notes = try storage.views.notes(ofDevices: numbers)
            for number in numbers {
                feed.keep(notes[number] ?? DeviceNote(), ofDevice: number)
            }
            feed.meet(Set(names).subtracting(known.keys), at: feed.head.revision)
        } catch {
            needsRecovery = true
            _ = faultAfterRecovery(from: error)
            return nil
        }
        return answer(request, nil)
    }

    /// Returns, for a log, why a batch could not be carried out, and forgets it; nil if none has
    /// failed since the last call.
    package func takeFault() -> StorageFault? {
        fault.take()
    }

    /// Returns the identifiers whose sets have been neither accepted nor finally refused. A set
    /// that depends on one of them may wait for it. Returns none while the storage does not answer.
    ///
    /// - Complexity: O(*n*) in the number of identifiers; each may need a query.
    package func undecided(_ identifiers: [String]) -> [String] {
        identifiers.filter { identifier in
            guard !needsRecovery else { return false }
            do throws(StorageFault) {
                return try !storage.isDecided(identifier)
            } catch {
                return false
            }
        }
    }

    /// Recovers, or leaves the recovery to the next batch.
    ///
    /// - Returns: The fault to report: the given one, or its cause if the recovery found it.
    func faultAfterRecovery(from fault: StorageFault) -> StorageFault {
        do throws(StorageFault) {
            try recover()
            return fault
        } catch {
            return error.kind == .changed ? error : fault
        }
    }

    func recover() throws(StorageFault) {
        try storage.recover()
        needsRecovery = false
        if storage.head != feed.cache.head {
            feed.cache.reset(to: storage.head, floor: storage.floor)
        } else {
            feed.cache.raise(floor: storage.floor)
        }
        feed.deltaCache.clear()
        feed.forgetDevices()
        viewIndex.rollBack()
        feed.views.forget()
    }

    private func attempt(
        _ requests: [AdmittedRequest], now: Int64, leavingOut unbearable: Set<Int>
    ) throws(StorageFault) -> [Result<NodeAnswer, Problem>] {
        // Requests that need no decision are answered last, from the state that the others have led
        // to.
        var needsWriter = false
        for request in requests where needsNode(request) { needsWriter = true }
        var works: [RequestWork?] = requests.map { _ in nil }
        if needsWriter {
            let external = try beginWhole(now: now)
            var batch = BatchDecision(
                storage: storage, rules: rules, policies: policies, hashes: feed.builder(log: log),
                views: feed.views, now: now,
                devicesPerUser: devicesPerUser, share: share, unbearable: unbearable)
            // The batch may change the views of the others, too.
            try batch.admit(
                requests.map { needsNode($0) || feed.sight(of: $0) != .everything ? $0 : nil })
            let sought = try soughtViews(of: requests, in: batch.works, now: now)
            for (index, view) in sought where !view.isGranted {
                batch.refuse(index, RequestCheck.view)
            }
            works = try batch.decide()
            try batch.addTruths(to: &works, of: requests)
            let moves = try addViews(sought, to: &works, of: requests, now: now)
            // The feed learns of a device before it sees the device's entries. Otherwise it would
            // send them to the device as another's.
            feed.learn(batch.devices)
            try commit(external + batch.entries + moves)
            for (request, work) in zip(requests, works) {
                if let work, let noted = work.noted { feed.keep(noted, ofDevice: work.device) }
                guard let views = work?.views else { continue }
                feed.views.note(
                    views, of: request.principal, isTracked: work?.isViewTracked ?? false)
            }
            feed.meet(batch.strangers, at: feed.head.revision)
        }
        var results: [Result<NodeAnswer, Problem>] = []
        for (index, request) in requests.enumerated() {
            results.append(answer(request, works[index]))
        }
        return results
    }

    private func needsNode(_ request: AdmittedRequest) -> Bool {
        // If other processes write to the log, memory may be behind it. After a transaction it is
        // not.
        if !request.isPull || storage.isShared || feed.sight(of: request) == .unknown {
            return true
        }
        guard let clientID = request.request.clientID else { return false }
        switch feed.acquaintance(of: clientID, at: feed.head.revision) {
        case .unmet: return true
        case .stranger: return false
        // The device may name another history, so that its confirmation counts no more.
        case .device(let device): return feed.note(ofDevice: device.number)?.confirmed != nil
        }
    }

    private func answer(
        _ admitted: AdmittedRequest, _ work: RequestWork?
    ) -> Result<NodeAnswer, Problem> {
        guard let work else {
            switch feed.answer(to: admitted, log: log) {
            case .answer(let answer): return .success(.made(answer))
            case .problem(let problem): return .failure(problem)
            case .needsLog, .needsNode:
                return .failure(
                    RequestCheck.problem(for: StorageFault(.failed, "no way to answer")))
            }
        }
        if let problem = work.problem { return .failure(problem) }
        do throws(AnswerBuilder.Failure) {
            var query = feed.query(admitted, work.device, feed.head)
            query.views = work.views.flatMap { $0.showsAll ? nil : $0 }
            if let views = query.views, views.view.number != admitted.lineage?.views.last {
                // The row belongs to a difference of another view.
                query.cursor = nil
            }
            query.own = try ownForms(work, for: query.views?.view)
            query.refused = work.refusedSets
            query.hasPostponed = work.hasPostponed
            let unread = UnreadAnswer(query: query, work: work)
            do throws(AnswerBuilder.Failure) {
                return .success(.made(try unread.make(with: feed.builder(log: nil))))
            } catch {
                guard case .notInMemory = error else { throw error }
                return .success(.unread(unread))
            }
        } catch {
            return .failure(error.problem)
        }
    }

    /// Returns the sets accepted now and before, as their device receives them.
    private func ownForms(
        _ work: RequestWork, for view: View?
    ) throws(AnswerBuilder.Failure) -> [Revision: [UInt8]] {
        var forms: [Revision: ChangeSet] = [:]
        do throws(StorageFault) {
            for (entry, set) in work.accepted {
                forms[entry.revision] = AuthorFormat.form(of: entry, holding: set)
            }
            for entry in try log.entries(at: work.repeats.filter { forms[$0] == nil }) {
                forms[entry.revision] = try Self.own { () throws(WireFault) in
                    try AuthorFormat.form(of: entry)
                }
            }
            var bytes: [Revision: [UInt8]] = [:]
            for (revision, form) in forms {
                let known = try view.map { (view) throws(StorageFault) in
                    try reduced(form, for: view)
                }
                bytes[revision] = try Self.own { () throws(WireFault) in
                    try SyncCoder.encode(known ?? form)
                }
            }
            return bytes
        } catch {
            throw .fault(error)
        }
    }

    private static func own<Form>(
        _ form: () throws(WireFault) -> Form
    ) throws(StorageFault) -> Form {
        do throws(WireFault) {
            return try form()
        } catch {
            throw StorageFault(.failed, "an entry of the log cannot be read: \(error)")
        }
    }
}

@available(*, unavailable)
extension DataSetNode: Sendable {}
