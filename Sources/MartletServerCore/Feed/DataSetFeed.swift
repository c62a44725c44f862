package import MartletModel
package import MartletProtocol
import Synchronization

/// Answers devices that only ask for missed changes, from memory. It works on any thread, without
/// SQLite, next to the one writer.
///
/// A `DataSetNode` makes the feed, and updates it after each commit.
///
/// ```swift
/// switch node.feed.answer(to: request) {
/// case .answer(let answer): send(answer.body)
/// case .problem(let problem): refuse(problem)
/// case .needsLog: readLog(request)
/// case .needsNode: decide(request)
/// }
/// ```
package final class DataSetFeed: Sendable {
    /// The outcome of a request.
    package enum Outcome: Sendable {
        case answer(PreparedAnswer)
        case problem(Problem)
        /// The answer needs rows, or entries that are not in memory. The caller asks a `LogReader`.
        case needsLog
        /// The request has change sets, or comes from a device that was not met before. The node
        /// answers it.
        case needsNode
    }

    let cache: LogCache
    let identity: String
    let fingerprint: String
    /// Says what people see.
    package let views = ViewBook()
    /// Says which rules concern people.
    let rules: RulesBook
    let answerBytes: Int
    let partBytes: Int
    /// True if other processes write to the log too, so that memory may be behind it.
    let isShared: Bool
    let deltaCache: DeltaCache
    private let met = Mutex(Met())
    private let otherLogs = Mutex(0)

    /// The devices that a node has met, by client id.
    private struct Met {
        var devices: [String: KnownDevice] = [:]
        /// Client ids that have never sent a change set, with the end of the log when that was
        /// found.
        var strangers: [String: Revision] = [:]
        /// The storage's notes about devices, by their numbers.
        var notes: [Int64: DeviceNote] = [:]
    }

    /// The state of a client id.
    enum Acquaintance: Equatable {
        case device(KnownDevice)
        /// It has never sent a change set.
        case stranger
        /// It has not been met; only the storage knows.
        case unmet
    }

    /// The most client ids of each kind that are kept.
    private static let mostDevices = 65_536

    /// Makes a feed.
    ///
    /// - Parameter deltaBytes: The approximate memory for entries in the format for listeners.
    init(
        cache: LogCache, deltaBytes: Int, identity: String, schema: Schema,
        answerBytes: Int, partBytes: Int, isShared: Bool
    ) {
        self.cache = cache
        deltaCache = DeltaCache(byteLimit: deltaBytes)
        self.identity = identity
        fingerprint = schema.fingerprint
        rules = RulesBook(schema)
        self.answerBytes = answerBytes
        self.partBytes = partBytes
        self.isShared = isShared
    }

    /// The newest committed revision and its hash.
    package var head: LogHead { cache.head }
    /// The bytes of the log's entries that this feed has met. Only the difference between two
    /// values has a meaning.
    package var loggedBytes: Int { cache.addedBytes }
    /// The revision up to which compaction has emptied entries. A device that is behind it gets a
    /// difference.
    package var floor: Revision { cache.floor }

    /// Answers a request without change sets if memory has everything for it.
    ///
    /// - Complexity: O(*n*) in the bytes of the answer.
    package func answer(to admitted: AdmittedRequest) -> Outcome {
        answer(to: admitted, log: nil)
    }

    func answer(
        to admitted: AdmittedRequest, log: (any LogSource)?, check: (any CheckSource)? = nil
    ) -> Outcome {
        guard admitted.isPull else { return .needsNode }
        var number: Int64 = 0
        let head = cache.head
        if let clientID = admitted.request.clientID {
            switch acquaintance(of: clientID, at: head.revision) {
            case .unmet: return .needsNode
            case .stranger: break
            case .device(let device):
                guard device.principal == admitted.principal.identity else {
                    return .problem(RequestCheck.clientBound)
                }
                number = device.number
            }
        }
        if let problem = RequestCheck.problem(with: admitted, identity: identity, head: head) {
            return outcome(of: problem, number, log)
        }
        // Another process may have written what the device still lacks.
        if isShared, log == nil, admitted.request.goal ?? 0 > head.revision { return .needsNode }
        do throws(AnswerBuilder.Failure) {
            let builder = builder(log: log)
            if let problem = try builder.lineageProblem(admitted.request, head: head) {
                return outcome(of: problem, number, log)
            }
            var query = query(admitted, number, head)
            switch sight(of: admitted) {
            case .everything: break
            case .limited(let views):
                query.views = views
                // Another process may have kept a confirmation since.
                if isShared, number != 0,
                    try confirmation(of: number, log) ?? 0 > admitted.request.maxRevision
                {
                    return .needsNode
                }
            case .unknown: return .needsNode
            }
            query.check = try compare(admitted, check, mayAskReader: log == nil)
            return .answer(try builder.answer(to: query))
        } catch {
            switch error {
            case .notInMemory, .compacted: return .needsLog
            case .fault(let fault): return .problem(RequestCheck.problem(for: fault))
            }
        }
    }

    /// Returns the outcome of a request with a problem. If its device's history is another one, the device
    /// may have any records, and the storage has to note it before the device learns of the problem.
    private func outcome(
        of problem: Problem, _ device: Int64, _ log: (any LogSource)?
    ) -> Outcome {
        guard RequestCheck.isOfHistory(problem) else { return .problem(problem) }
        if mayBeOld(problem, log) { return .needsLog }
        guard device != 0, views.program != nil else { return .problem(problem) }
        do throws(AnswerBuilder.Failure) {
            if !isShared, note(ofDevice: device) == nil { return .needsNode }
            return try confirmation(of: device, log) == nil ? .problem(problem) : .needsNode
        } catch {
            switch error {
            case .notInMemory, .compacted: return .needsLog
            case .fault(let fault): return .problem(RequestCheck.problem(for: fault))
            }
        }
    }

    /// Returns the revision up to which a device's confirmation counts; nil if none counts. If other
    /// processes keep confirmations too, only the log knows.
    private func confirmation(
        of device: Int64, _ log: (any LogSource)?
    ) throws(AnswerBuilder.Failure) -> Revision? {
        guard isShared else { return note(ofDevice: device)?.confirmed }
        guard let log else { throw .notInMemory }
        do throws(StorageFault) {
            return try log.confirmation(of: device)
        } catch {
            throw .fault(error)
        }
    }

    /// Returns the limits of an answer that is made without the writer.
    func sight(of admitted: AdmittedRequest) -> ViewBook.Sight {
        let since = admitted.request.maxRevision
        let sight = views.sight(
            of: admitted.principal, since: since, goal: admitted.request.goal ?? 0,
            admitted.lineage, head: cache.head.revision)
        let view: Int64
        switch sight {
        case .everything: view = View.everything
        case .limited(let change): view = change.view.number
        case .unknown: return .unknown
        }
        guard let clientID = admitted.request.clientID else { return sight }
        // The storage has to note the device, and the view, before the device gets a row of it.
        guard let device = knownDevice(clientID) else {
            return view == View.everything ? sight : .unknown
        }
        guard let note = note(ofDevice: device.number), note.view == view else { return .unknown }
        // An older copy of the device's file may have records again that had left the view.
        guard since >= note.confirmed ?? 0 else { return .unknown }
        guard isShared, views.program != nil else { return sight }
        // Another process may have given the device another view since. It gave it this one, too, if
        // the device names it.
        let isNamed = admitted.lineage.map { ViewBook.held(since: since, $0, of: view) } == [view]
        return isNamed ? sight : .unknown
    }

    /// Returns whether the storage has noted that a device of a person was given a view last, and no other
    /// process can have noted another one since.
    package func hasNoted(_ view: Int64, givenTo clientID: String, of person: Principal) -> Bool {
        guard let device = knownDevice(clientID), !isShared else { return false }
        return device.principal == person.identity && note(ofDevice: device.number)?.view == view
    }

    /// Returns whether memory knows that a person may name a device: it is his own.
    package func isKnown(_ clientID: String, asDeviceOf person: Principal) -> Bool {
        knownDevice(clientID)?.principal == person.identity
    }

    /// Returns the storage's note about a device; nil if only the storage knows.
    func note(ofDevice device: Int64) -> DeviceNote? {
        met.withLock { $0.notes[device] }
    }

    /// Keeps the storage's note about a device.
    func keep(_ note: DeviceNote, ofDevice device: Int64) {
        met.withLock { met in
            if met.notes.count > Self.mostDevices { met.notes.removeAll() }
            met.notes[device] = note
        }
    }

    /// Returns whether memory alone knows that a person may be sent the rest of an answer that was made for
    /// him: he has the view for which it was made, and nothing has concerned him since. Other processes'
    /// writes may be missing in memory.
    package func stillShows(_ view: AnsweredView, to person: Principal) -> Bool {
        !isShared && views.shows(view, to: person, head: head.revision)
    }

    /// Returns whether a problem with a device's history may only mean that memory is behind the
    /// log. The caller then asks a reader of the log.
    func mayBeOld(_ problem: Problem, _ log: (any LogSource)?) -> Bool {
        isShared && log == nil && RequestCheck.isOfHistory(problem)
    }

    /// Returns the result of a comparison.
    ///
    /// It is nil if the request asks for none, if the principal does not see everything and so has
    /// nothing to compare, and for the writer, which compares nothing.
    private func compare(
        _ admitted: AdmittedRequest, _ source: (any CheckSource)?, mayAskReader: Bool
    ) throws(AnswerBuilder.Failure) -> CheckAnswer? {
        guard let check = admitted.request.check, sight(of: admitted) == .everything
        else { return nil }
        guard let source else {
            guard mayAskReader else { return nil }
            throw .notInMemory
        }
        do throws(StorageFault) {
            return try source.compare(check)
        } catch {
            throw .fault(error)
        }
    }

    /// Returns the facts about a device; nil if it was not met before.
    func knownDevice(_ clientID: String) -> KnownDevice? {
        met.withLock { $0.devices[clientID] }
    }

    /// Returns the state of a client id.
    /// - Parameter revision: The end of the answer. If other processes write to the log too, any
    ///   newer entry may have made a stranger a device.
    func acquaintance(of clientID: String, at revision: Revision) -> Acquaintance {
        met.withLock { met in
            if let device = met.devices[clientID] { return .device(device) }
            guard let found = met.strangers[clientID], !isShared || found == revision else {
                return .unmet
            }
            return .stranger
        }
    }

    func builder(log: (any LogSource)?) -> AnswerBuilder {
        AnswerBuilder(
            cache: cache, generation: cache.generation, log: log, identity: identity,
            fingerprint: fingerprint,
            answerBytes: answerBytes, partBytes: partBytes)
    }

    func query(
        _ admitted: AdmittedRequest, _ device: Int64, _ head: LogHead
    ) -> AnswerBuilder.Query {
        var query = AnswerBuilder.Query(
            principal: admitted.principal, device: device, since: admitted.request.maxRevision,
            head: head, acceptsGzip: admitted.acceptsGzip,
            isPlainRequest: admitted.request.clientID == nil
                && admitted.request.protocolVersion == nil)
        let lineage = admitted.lineage
        query.wantsRows = admitted.request.wantsRows || lineage?.isUnfinished == true
        query.answerBytes = admitted.request.answerBytes.map(Int.init) ?? .max
        query.clientID = admitted.request.clientID
        query.request = admitted.request.request
        query.cursor = lineage?.cursor
        query.hasPolicies = views.program != nil
        if !query.isPlainRequest {
            query.rules = rules.rules(
                of: admitted.principal, insteadOf: admitted.request.rules)
        }
        return query
    }

    /// Adds devices that a node has met. The principal of a device never changes.
    func learn(_ known: [String: KnownDevice]) {
        guard !known.isEmpty else { return }
        met.withLock { met in
            if met.devices.count > Self.mostDevices { met.devices.removeAll() }
            met.devices.merge(known) { _, new in new }
            for name in known.keys { met.strangers[name] = nil }
        }
    }

    /// Notes the client ids that the storage did not know when the log ended at a revision.
    func meet(_ strangers: Set<String>, at revision: Revision) {
        guard !strangers.isEmpty else { return }
        met.withLock { met in
            if met.strangers.count > Self.mostDevices { met.strangers.removeAll() }
            for name in strangers where met.devices[name] == nil {
                met.strangers[name] = revision
            }
        }
    }

    /// Forgets all client ids, because they may be from a transaction that was rolled back.
    func forgetDevices() {
        met.withLock { $0 = Met() }
    }

    /// How often another log was found in place of the one that was there.
    var otherLogCount: Int { otherLogs.withLock(\.self) }

    /// Notes that another log was found in place of the one that was there, because the data set was restored.
    /// The node retires all views in its next transaction.
    package func meetOtherLog() {
        otherLogs.withLock { $0 += 1 }
    }
}
