import MartletCore
import MartletProtocol
import OpenSSLKit

/// The decisions on one batch, within one transaction of the storage.
struct BatchDecision {
    private let storage: any ServerStorage
    private let rules: Rules
    private let hashes: AnswerBuilder
    private let now: Int64
    /// The log's new entries.
    private(set) var entries: [LogEntry] = []
    /// Devices met, by client id.
    private(set) var devices: [String: KnownDevice] = [:]

    init(storage: any ServerStorage, rules: Rules, hashes: AnswerBuilder, now: Int64) {
        self.storage = storage
        self.rules = rules
        self.hashes = hashes
        self.now = now
    }

    mutating func decide(_ admitted: AdmittedRequest) throws(StorageFault) -> RequestWork {
        var work = RequestWork()
        work.problem = try problem(with: admitted, &work)
        guard work.problem == nil else { return work }
        var questions: [SetQuestion] = []
        for set in admitted.request.changeSets {
            questions.append(question(set, admitted, work.device))
        }
        var facts = try storage.facts(for: questions)
        if reusesIdentity(questions, facts) {
            work.problem = RequestCheck.identityReused
            return work
        }
        if let clientID = admitted.request.clientID,
            let acknowledged = admitted.request.acknowledged
        {
            try storage.acknowledge(acknowledged, clientID: clientID)
        }
        var age = FactsAge()
        for (index, set) in admitted.request.changeSets.enumerated() {
            let question = questions[index]
            if age.outdates(facts[index], of: question) {
                facts[index] = try storage.facts(for: [question])[0]
            }
            let acceptedBefore = work.acceptedCount
            if let dependency = question.dependency, work.decided.contains(dependency) {
                facts[index].isDependencyDecided = true
            }
            try decide(set, question, facts[index], admitted, &work)
            let isAccepted = work.acceptedCount > acceptedBefore
            // After the last set no facts are asked of it.
            guard index + 1 < questions.count else { break }
            age.note(
                question, accepted: isAccepted ? work.accepted.last?.set : nil, storage.schema)
        }
        return work
    }

    // MARK: - The request

    private mutating func problem(
        with admitted: AdmittedRequest, _ work: inout RequestWork
    ) throws(StorageFault) -> Problem? {
        let request = admitted.request
        if let problem = RequestCheck.problem(
            with: admitted, identity: storage.identity, head: storage.head)
        {
            return problem
        }
        do throws(AnswerBuilder.Failure) {
            if let problem = try hashes.lineageProblem(request, head: storage.head) {
                return problem
            }
        } catch {
            guard case .fault(let fault) = error else { return RequestCheck.lineage }
            throw fault
        }
        guard let clientID = request.clientID else { return nil }
        if let known = try storage.devices(named: [clientID])[clientID] {
            guard known.principal == admitted.principal.identity else {
                return RequestCheck.clientBound
            }
            devices[clientID] = known
            work.device = known.number
            return nil
        }
        let new = try storage.register(
            clientID: clientID, principal: admitted.principal, now: now)
        devices[clientID] = new
        work.device = new.number
        return nil
    }

    private func question(
        _ set: ChangeSet, _ admitted: AdmittedRequest, _ device: Int64
    ) -> SetQuestion {
        let reading: Result<SetPlan, Refusal>
        do throws(Refusal) {
            reading = .success(
                try SetPlan(set, schema: storage.schema, checks: storage.checks))
        } catch {
            reading = .failure(error)
        }
        return SetQuestion(
            device: device, principal: admitted.principal, identifier: set.identifier,
            sequence: set.sequence, dependency: set.dependencyIdentifier,
            content: SHA256.digest(admitted.source, set.source.start, set.source.end),
            reading: reading)
    }

    /// Whether a set bears a number that the device has used for another set: the file is a copy.
    private func reusesIdentity(_ questions: [SetQuestion], _ facts: [SetFacts]) -> Bool {
        var numbers: [Int64: [UInt8]] = [:]
        for (question, facts) in zip(questions, facts) {
            guard question.device != 0, let sequence = question.sequence else { continue }
            if let other = numbers.updateValue(question.content, forKey: sequence),
                other != question.content
            {
                return true
            }
            guard let used = facts.used else { continue }
            let isSame =
                used.identifier == nil && question.identifier == nil
                ? used.content == question.content : used.identifier == question.identifier
            if !isSame { return true }
        }
        return false
    }

    // MARK: - A set

    private mutating func decide(
        _ set: ChangeSet, _ question: SetQuestion, _ facts: SetFacts,
        _ admitted: AdmittedRequest, _ work: inout RequestWork
    ) throws(StorageFault) {
        if let decided = facts.decided {
            do throws(Refusal) {
                switch try Acceptance.repeated(decided) {
                case .accepted(let revision): work.repeats.append(revision)
                case .refused(let refusal): work.refuse(set, refusal)
                }
            } catch {
                work.refuse(set, error)
            }
            return
        }
        switch judge(set, question, facts, admitted, work) {
        case .failure(let refusal):
            try refuse(set, refusal, question, &work)
        case .success(let plan):
            let carried = SetWork(
                question: question, plan: plan, facts: facts, timestamp: set.timestamp, now: now)
            guard let outcome = try storage.apply([carried]).first else {
                throw StorageFault(.failed, "the storage did not say how a set ended")
            }
            switch outcome {
            case .accepted(let entry, let accepted):
                entries.append(entry)
                work.accepted.append((entry, accepted))
            case .refused(let refusal):
                try refuse(set, refusal, question, &work)
            }
        }
    }

    private func judge(
        _ set: ChangeSet, _ question: SetQuestion, _ facts: SetFacts,
        _ admitted: AdmittedRequest, _ work: RequestWork
    ) -> Result<SetPlan, Refusal> {
        do throws(Refusal) {
            let plan = try question.reading.get()
            let context = SetContext(
                principal: admitted.principal, device: work.device, seen: set.seen,
                maxRevision: admitted.request.maxRevision,
                dependency: set.dependencyIdentifier, followsRetryable: work.hasRetryable)
            try Acceptance.judge(
                plan, in: context, facts: facts, schema: storage.schema, rules: rules)
            return .success(plan)
        } catch {
            return .failure(error)
        }
    }

    private func refuse(
        _ set: ChangeSet, _ refusal: Refusal, _ question: SetQuestion, _ work: inout RequestWork
    ) throws(StorageFault) {
        work.refuse(set, refusal)
        guard !refusal.isRetryable else { return }
        try storage.remember(refusal, of: question, now: now)
    }

    // MARK: - Truths

    /// Reads what the records of refused sets are now, at the end of the batch: a truth read
    /// earlier could bring back what a later set of the request has deleted.
    func addTruths(
        to works: inout [RequestWork?], filter: VisibilityFilter, of requests: [AdmittedRequest]
    ) throws(StorageFault) {
        for (index, request) in requests.enumerated() {
            guard var work = works[index], !work.refused.isEmpty else { continue }
            var room = Limits.answerBytes
            for (set, refusal) in zip(work.refused, work.refusals) {
                var types: [TypeChanges] = []
                if !refusal.isRetryable, room > 0 {
                    let question = TruthQuestion(device: work.device, set: set)
                    types = try storage.truths(of: [question], maxBytes: Self.truthBytes)[0]
                    room -= types.reduce(0) { $0 + $1.entries.count * 200 }
                }
                var down = ChangeSet(types: filter.truth(types, for: request.principal))
                down.identifier = set.identifier
                down.sequence = set.sequence
                down.conflict = true
                down.reason = refusal.reason
                down.message = refusal.message
                down.retryAfter = refusal.retryAfter
                work.refusedSets.append(down)
            }
            works[index] = work
        }
    }

    /// Bytes one truth may take; what goes beyond is left out.
    private static let truthBytes = 32 << 20
}
