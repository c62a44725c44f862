public import MartletModel
public import MartletProtocol
import Synchronization

/// Answers devices that only ask for what they miss, from memory: on any thread, without SQLite,
/// beside the one writer.
///
/// Made by a `DataSetNode`, which keeps it up to date after each commit.
public final class DataSetFeed: Sendable {
    /// What a feed makes of a request.
    public enum Outcome: Sendable {
        case answer(PreparedAnswer)
        case problem(Problem)
        /// The answer needs entries that are not in memory, or rows: ask a `LogReader`.
        case needsLog
        /// The request carries change sets, or comes from a device not met before: it is the
        /// node's.
        case needsNode
    }

    let cache: LogCache
    let identity: String
    let fingerprint: String
    let filter: VisibilityFilter
    let answerBytes: Int
    let partBytes: Int
    /// Whether other processes write to the log too: what is in memory may be old.
    let isShared: Bool
    let deltaCache: DeltaCache
    private let met = Mutex(Met())

    /// The devices that a node has met, by client id.
    private struct Met {
        var devices: [String: KnownDevice] = [:]
        /// Client ids that have never sent a change set, with the end of the log when that was
        /// found.
        var strangers: [String: Revision] = [:]
    }

    /// The state of a client id.
    enum Standing: Equatable {
        case device(KnownDevice)
        /// It has never sent a change set.
        case stranger
        /// It has not been met; only the storage knows.
        case unmet
    }

    /// The most client ids that are kept of each kind.
    private static let mostDevices = 65_536

    /// - Parameter deltaBytes: Memory for entries as listeners get them, about.
    init(
        cache: LogCache, deltaBytes: Int, identity: String, fingerprint: String,
        filter: VisibilityFilter,
        answerBytes: Int, partBytes: Int, isShared: Bool
    ) {
        self.cache = cache
        deltaCache = DeltaCache(byteLimit: deltaBytes)
        self.identity = identity
        self.fingerprint = fingerprint
        self.filter = filter
        self.answerBytes = answerBytes
        self.partBytes = partBytes
        self.isShared = isShared
    }

    /// The newest committed revision and its hash.
    public var head: LogHead { cache.head }
    /// The bytes of the log's entries that this feed has met. Only differences between two values
    /// have a meaning.
    package var loggedBytes: Int { cache.addedBytes }
    /// Who is behind this revision gets a difference: compaction has emptied entries up to it.
    public var floor: Revision { cache.floor }

    /// Answers a request that carries nothing up, where memory suffices.
    /// - Complexity: O(*n*) in the bytes of the answer.
    public func answer(to admitted: AdmittedRequest) -> Outcome {
        answer(to: admitted, log: nil)
    }

    func answer(
        to admitted: AdmittedRequest, log: (any LogSource)?, check: (any CheckSource)? = nil
    ) -> Outcome {
        guard admitted.isPull else { return .needsNode }
        var number: Int64 = 0
        let head = cache.head
        if let clientID = admitted.request.clientID {
            switch standing(of: clientID, at: head.revision) {
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
            return mayBeOld(problem, log) ? .needsLog : .problem(problem)
        }
        do throws(AnswerBuilder.Failure) {
            let builder = builder(log: log)
            if let problem = try builder.lineageProblem(admitted.request, head: head) {
                return mayBeOld(problem, log) ? .needsLog : .problem(problem)
            }
            var question = question(admitted, number, head)
            question.check = try compare(admitted, check, mayAskReader: log == nil)
            return .answer(try builder.answer(to: question))
        } catch {
            switch error {
            case .notInMemory, .compacted: return .needsLog
            case .fault(let fault): return .problem(RequestCheck.problem(for: fault))
            }
        }
    }

    /// Whether a problem with a device's history may only be that memory is behind the log: who has
    /// the log looks again.
    func mayBeOld(_ problem: Problem, _ log: (any LogSource)?) -> Bool {
        isShared && log == nil && RequestCheck.isOfHistory(problem)
    }

    /// What a comparison finds; nil where none is asked for, where the principal does not see
    /// everything and so has nothing that compares, and at the writer, which compares nothing.
    private func compare(
        _ admitted: AdmittedRequest, _ source: (any CheckSource)?, mayAskReader: Bool
    ) throws(AnswerBuilder.Failure) -> CheckAnswer? {
        guard let check = admitted.request.check, filter.showsEverything(to: admitted.principal)
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

    /// What is known of a device; nil for one not met before.
    func knownDevice(_ clientID: String) -> KnownDevice? {
        met.withLock { $0.devices[clientID] }
    }

    /// Returns the state of a client id.
    /// - Parameter revision: The end of the answer. If other processes write to the log too, any
    ///   newer entry may have made a stranger a device.
    func standing(of clientID: String, at revision: Revision) -> Standing {
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
            cache: cache, generation: cache.generation, log: log, filter: filter,
            identity: identity, fingerprint: fingerprint,
            answerBytes: answerBytes, partBytes: partBytes)
    }

    func question(
        _ admitted: AdmittedRequest, _ device: Int64, _ head: LogHead
    ) -> AnswerBuilder.Question {
        var question = AnswerBuilder.Question(
            principal: admitted.principal, device: device, since: admitted.request.maxRevision,
            head: head, acceptsGzip: admitted.acceptsGzip,
            isPlainRequest: admitted.request.clientID == nil
                && admitted.request.protocolVersion == nil)
        question.wantsRows =
            admitted.request.wantsRows || UnfinishedLineage.isNamed(admitted.request.lineage)
        question.answerBytes = admitted.request.answerBytes.map(Int.init) ?? .max
        question.clientID = admitted.request.clientID
        question.request = admitted.request.request
        question.cursor = UnfinishedLineage.cursor(in: admitted.request.lineage)
        return question
    }

    /// Takes over devices that a node has met. To whom a device is bound never changes.
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

    /// What is known may be of a transaction that was undone.
    func forgetDevices() {
        met.withLock { $0 = Met() }
    }
}
