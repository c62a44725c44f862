import MartletModel
import MartletProtocol
import MartletRules
import OpenSSLKit

/// The decisions on one batch, within one transaction of the storage.
///
/// Each set is judged as if those before it had been carried out one by one. The batch asks for the
/// facts of all sets at once, and carries acceptable sets out together. It stops before a set whose
/// facts they make stale, and asks for that set's facts again.
struct BatchDecision {
    /// A set of the batch.
    private struct Item {
        /// The position of its request.
        let request: Int
        let set: ChangeSet
        let factsRequest: FactsRequest
        var facts = SetFacts()
        /// True if only the set's earlier verdicts are known, and the rest is requested when its
        /// turn comes.
        var isPartial = false
        /// The judgement by the data set's policies; nil if it has none, or the set cannot be read.
        var rights: SetRights?

        /// The number of records that the set changes, as far as known.
        var recordCount: Int { (factsRequest.plan?.changeCount ?? 0) + facts.affected.count }
    }

    /// The verdict on a set.
    private enum Verdict {
        /// It was accepted before.
        case accepted(Revision)
        /// It was refused before, or its identifier belongs to another set. Nothing new is stored.
        case repeated(Refusal)
        case refused(Refusal)
        /// It has still to be carried out.
        case acceptable(SetWork)
    }

    let storage: any ServerStorage
    private let rules: Rules
    let policies: RulesProgram?
    private let hashes: AnswerBuilder
    private let views: ViewBook
    let now: Int64
    private let devicesPerUser: Int
    private let share: SetMeasure.Share
    /// The positions of the sets of a single request that are put off without a try.
    private let unbearable: Set<Int>
    /// The log's new entries.
    private(set) var entries: [LogEntry] = []
    /// The devices that were met, by client id.
    private(set) var devices: [String: KnownDevice] = [:]
    /// The client ids in the batch that are not known as devices.
    private(set) var strangers: Set<String> = []

    /// The decisions on the requests so far.
    private(set) var works: [RequestWork?] = []
    private var requests: [AdmittedRequest?] = []
    private var items: [Item] = []
    private var age: StaleFacts
    /// The sets that were judged and not carried out yet, in order, by position in `items`.
    private var judged: [(item: Int, verdict: Verdict)] = []

    init(
        storage: any ServerStorage, rules: Rules, policies: RulesProgram?, hashes: AnswerBuilder,
        views: ViewBook, now: Int64,
        devicesPerUser: Int, share: SetMeasure.Share, unbearable: Set<Int> = []
    ) {
        self.share = share
        self.devicesPerUser = devicesPerUser
        self.unbearable = unbearable
        self.storage = storage
        self.rules = rules
        self.policies = policies
        self.hashes = hashes
        self.views = views
        self.now = now
        age = StaleFacts(schema: storage.schema)
    }

    /// Takes requests, finds faults of whole requests, and identifies the senders of the others.
    ///
    /// - Parameter requests: The requests; nil for one that needs no decision.
    mutating func admit(_ requests: [AdmittedRequest?]) throws(StorageFault) {
        self.requests = requests
        works = requests.map { $0 == nil ? nil : RequestWork() }
        try identify()
    }

    /// Has no set of a request decided.
    mutating func refuse(_ request: Int, _ problem: Problem) {
        works[request]?.problem = problem
    }

    /// Decides on the sets of the requests that were admitted, in order.
    ///
    /// - Returns: The decisions; nil for a request that needed none.
    mutating func decide() throws(StorageFault) -> [RequestWork?] {
        let ranges = try ask()
        for (index, request) in requests.enumerated() {
            guard let request, works[index]?.problem == nil else { continue }
            try renewNumbers(ranges[index])
            if reusesIdentity(ranges[index]) {
                works[index]?.problem = RequestCheck.identityReused
                continue
            }
            if let clientID = request.request.clientID,
                let acknowledged = request.request.acknowledged
            {
                try storage.acknowledge(acknowledged, clientID: clientID)
            }
            for item in ranges[index] { try decide(item) }
        }
        try carryOutJudged()
        try decideCopies()
        return works
    }

    // MARK: - Requests

    private mutating func identify() throws(StorageFault) {
        var names: [String] = []
        for (index, request) in requests.enumerated() {
            guard let request else { continue }
            let problem = try problem(with: request)
            works[index]?.problem = problem
            // The confirmation of a device with another history counts no more.
            if problem.map(RequestCheck.isOfHistory) ?? true, let name = request.request.clientID,
                !names.contains(name)
            {
                names.append(name)
            }
        }
        guard !names.isEmpty else { return }
        devices = try storage.devices(named: names)
        try register()
        for (index, request) in requests.enumerated() {
            guard let request, let name = request.request.clientID else { continue }
            let hasProblem = works[index]?.problem != nil
            guard let known = devices[name] else {
                if !hasProblem { strangers.insert(name) }
                continue
            }
            if known.principal == request.principal.identity {
                works[index]?.device = known.number
            } else if !hasProblem {
                works[index]?.problem = RequestCheck.clientBound
            }
        }
    }

    /// Registers devices with their first change sets or, if their users see a part, with their first
    /// requests. The server stores nothing about a device that only asks and whose user sees everything.
    private mutating func register() throws(StorageFault) {
        for (index, request) in requests.enumerated() {
            guard let request, works[index]?.problem == nil,
                let name = request.request.clientID, devices[name] == nil,
                !request.isPull || !views.showsEverything(to: request.principal)
            else { continue }
            devices[name] = try storage.register(
                clientID: name, principal: request.principal, most: devicesPerUser, now: now)
            if devices[name] == nil {
                works[index]?.problem = RequestCheck.tooManyDevices(devicesPerUser)
            }
        }
    }

    private func problem(with admitted: AdmittedRequest) throws(StorageFault) -> Problem? {
        let head = storage.head
        if let problem = RequestCheck.problem(
            with: admitted, identity: storage.identity, head: head)
        {
            return problem
        }
        do throws(AnswerBuilder.Failure) {
            return try hashes.lineageProblem(admitted.request, head: head)
        } catch {
            guard case .fault(let fault) = error else { return RequestCheck.lineage }
            throw fault
        }
    }

    /// Requests the facts of all sets.
    ///
    /// - Returns: The ranges of each request's sets in `items`.
    private mutating func ask() throws(StorageFault) -> [Range<Int>] {
        var ranges: [Range<Int>] = []
        for (index, request) in requests.enumerated() {
            let start = items.count
            if let request, let work = works[index], work.problem == nil {
                for (position, set) in request.request.changeSets.enumerated() {
                    let factsRequest =
                        unbearable.contains(position)
                        ? Self.unasked(request) : factsRequest(set, request, work.device)
                    items.append(Item(request: index, set: set, factsRequest: factsRequest))
                }
            }
            ranges.append(start..<items.count)
        }
        // Deletes may affect much, so their effects are requested for a few sets at a time.
        var followed = 0
        for position in items.indices where age.reachesOthers(items[position].factsRequest) {
            followed += 1
            items[position].isPartial = followed > share.mostFollowed
        }
        try renew(Array(items.indices))
        return ranges
    }

    /// Requests the facts of items, by position.
    private mutating func renew(_ positions: [Int]) throws(StorageFault) {
        guard !positions.isEmpty else { return }
        let found = try storage.facts(
            for: positions.map {
                items[$0].isPartial ? items[$0].factsRequest.withoutPlan : items[$0].factsRequest
            })
        guard found.count == positions.count else {
            throw StorageFault(.failed, "the storage did not give all facts")
        }
        for (position, facts) in zip(positions, found) { items[position].facts = facts }
    }

    /// Returns the request for a set that is put off. It names nothing.
    private static func unasked(_ admitted: AdmittedRequest) -> FactsRequest {
        FactsRequest(
            device: 0, principal: admitted.principal, identifier: nil, sequence: nil,
            dependency: nil, content: [], reading: .failure(DataSetNode.unbearable))
    }

    private func factsRequest(
        _ set: ChangeSet, _ admitted: AdmittedRequest, _ device: Int64
    ) -> FactsRequest {
        let reading: Result<SetPlan, Refusal>
        do throws(Refusal) {
            reading = .success(
                try SetPlan(set, schema: storage.schema, checks: storage.checks))
        } catch {
            reading = .failure(error)
        }
        return FactsRequest(
            device: device, principal: admitted.principal, identifier: set.identifier,
            sequence: set.sequence, dependency: set.dependencyIdentifier,
            content: SHA256.digest(admitted.source, set.source.start, set.source.end),
            reading: reading)
    }

    /// Requests again the facts of a request's sets whose numbers an earlier request of the batch
    /// had, too.
    private mutating func renewNumbers(_ range: Range<Int>) throws(StorageFault) {
        let outdated = range.filter { age.isNumbered(items[$0].factsRequest) }
        guard !outdated.isEmpty else { return }
        try carryOutJudged()
        try renew(outdated)
    }

    /// Returns whether a set has a number that the device has used for another set. The device's
    /// file is then a copy.
    private func reusesIdentity(_ range: Range<Int>) -> Bool {
        var numbers: [Int64: [UInt8]] = [:]
        for item in items[range] {
            let factsRequest = item.factsRequest
            guard factsRequest.device != 0, let sequence = factsRequest.sequence else { continue }
            if let other = numbers.updateValue(factsRequest.content, forKey: sequence),
                other != factsRequest.content
            {
                return true
            }
            guard let used = item.facts.used else { continue }
            let isSame =
                used.identifier == nil && factsRequest.identifier == nil
                ? used.content == factsRequest.content : used.identifier == factsRequest.identifier
            if !isSame { return true }
        }
        return false
    }

    // MARK: - Sets

    private mutating func decide(_ item: Int) throws(StorageFault) {
        let before = storage.steps
        // An earlier set may change the rights to any row.
        if policies != nil { try carryOutJudged() }
        if items[item].isPartial ? !isPutOff(item) : isOutdated(item) {
            try carryOutJudged()
            items[item].isPartial = false
            try renew([item])
        }
        guard items[item].facts.decided == nil else { return try judgeInTurn(item) }
        try judgeRights(item)
        let (request, records) = (items[item].request, items[item].recordCount)
        let isLarge = records >= share.largeSet
        if isLarge { try carryOutJudged() }
        try judgeInTurn(item)
        works[request]?.steps += records * SetMeasure.stepsOfRecord
        guard isLarge else { return }
        try carryOutJudged()
        works[request]?.steps += storage.steps - before
        items[item].facts = SetFacts()
    }

    /// Judges a set by the policies, on the state that the sets before it have led to.
    private mutating func judgeRights(_ item: Int) throws(StorageFault) {
        guard let policies, let plan = items[item].factsRequest.plan else { return }
        let rights = RowRights(policies, of: items[item].factsRequest.principal, now: now)
        items[item].rights = try SetRights(
            rights, plan, items[item].facts,
            followsRetryable: works[items[item].request]?.hasRetryable ?? false,
            read: storage.rows(of:where:isAmong:))
    }

    private mutating func isOutdated(_ item: Int) -> Bool {
        age.outdates(items[item].facts, of: items[item].factsRequest)
    }

    /// Returns whether the earlier sets of its request were so much work that a set has to wait for
    /// the next request. Sets of other devices are decided in between.
    private func isPutOff(_ item: Int) -> Bool {
        let steps = works[items[item].request]?.steps ?? 0
        return steps >= share.mostSteps && items[item].facts.decided == nil
    }

    private static let putOff = Refusal(
        .busy,
        "the sets before it in its request were much work; the server goes on with it in the next one",
        retryAfter: 1)

    private mutating func judgeInTurn(_ item: Int) throws(StorageFault) {
        let verdict = judge(item)
        age.note(items[item].factsRequest)
        switch verdict {
        case .acceptable(let work):
            age.note(work)
            if storage.changesMore(work) { try carryOutJudged() }
        case .refused(let refusal), .repeated(let refusal):
            // Later sets of its request may be refused for the time being, too.
            if refusal.isRetryable { try carryOutJudged() }
        case .accepted:
            break
        }
    }

    /// Judges a set when the outcomes of the earlier ones are known, and keeps the verdict until it
    /// is carried out.
    @discardableResult
    private mutating func judge(_ item: Int) -> Verdict {
        works[items[item].request]?.forgetFollowed(from: item)
        let verdict = verdict(on: item)
        judged.append((item, verdict))
        let refusal: Refusal? =
            switch verdict {
            case .refused(let refusal), .repeated(let refusal): refusal
            case .accepted, .acceptable: nil
            }
        works[items[item].request]?.follow(items[item].set, refusal, at: item)
        return verdict
    }

    private func verdict(on position: Int) -> Verdict {
        let item = items[position]
        guard let admitted = requests[item.request], let work = works[item.request] else {
            preconditionFailure("a set belongs to a request")
        }
        if let decided = item.facts.decided {
            do throws(Refusal) {
                switch try Acceptance.repeated(decided) {
                case .accepted(let revision): return .accepted(revision)
                case .refused(let refusal): return .repeated(refusal)
                }
            } catch {
                return .repeated(error)
            }
        }
        if isPutOff(position) { return .refused(Self.putOff) }
        if item.set.needsItself {
            return .refused(
                Refusal(.dependency, "the set names itself as the one that it depends on"))
        }
        if let refusal = work.refusal(onTopOf: item.set) { return .refused(refusal) }
        var facts = item.facts
        if let dependency = item.factsRequest.dependency, work.decided.contains(dependency) {
            facts.isDependencyDecided = true
        }
        do throws(Refusal) {
            // The storage may know better why the set cannot be read.
            if case .failure = item.factsRequest.reading, let refusal = facts.refusal {
                throw refusal
            }
            let plan = try item.factsRequest.reading.get()
            let context = SetContext(
                principal: admitted.principal, device: work.device, seen: item.set.seen,
                maxRevision: admitted.request.maxRevision,
                dependency: item.set.dependencyIdentifier, followsRetryable: work.hasRetryable)
            try Acceptance.judge(
                plan, in: context, facts: facts, schema: storage.schema, rules: rules,
                rights: item.rights)
            let collision = item.rights.flatMap { _ in
                Acceptance.collision(plan, in: context, facts: facts, schema: storage.schema)
            }
            facts.clearEarlierRecords(with: plan)
            return .acceptable(
                SetWork(
                    request: item.factsRequest, plan: plan, facts: facts, rights: item.rights,
                    refusal: collision, timestamp: item.set.timestamp, now: now))
        } catch {
            return .refused(error)
        }
    }

    /// Repeats the verdicts on sets that were put off and that a later copy of their request, in the same batch, had
    /// accepted. Every answer of the batch has the rows of all accepted sets, so it needs the verdicts on its own ones.
    private mutating func decideCopies() throws(StorageFault) {
        guard works.contains(where: { $0?.hasRetryable == true }) else { return }
        let accepted = Set(entries.compactMap(\.identifier))
        let copies = items.indices.filter { position in
            let item = items[position]
            guard let name = item.set.identifier, accepted.contains(name) else { return false }
            return works[item.request]?.putOffPosition(of: name) != nil
        }
        try renew(copies)
        for position in copies where items[position].facts.decided != nil {
            let item = items[position]
            guard let name = item.set.identifier,
                let index = works[item.request]?.putOffPosition(of: name)
            else { continue }
            works[item.request]?.takeBack(at: index)
            try judgeInTurn(position)
        }
        try carryOutJudged()
    }

    /// Carries out the acceptable sets, and notes each set's outcome. If the storage refuses one,
    /// the sets behind it are judged again, because they were not tried.
    private mutating func carryOutJudged() throws(StorageFault) {
        while !judged.isEmpty {
            let waiting = judged
            judged = []
            let outcomes = try carryOut(waiting)
            var next = 0
            for (position, (item, verdict)) in waiting.enumerated() {
                guard case .acceptable = verdict else {
                    try note(verdict, of: item)
                    continue
                }
                guard next < outcomes.count else {
                    throw StorageFault(.failed, "the storage did not say how a set ended")
                }
                let outcome = outcomes[next]
                next += 1
                switch outcome {
                case .accepted(let entry, let set):
                    entries.append(entry)
                    works[items[item].request]?.accepted.append((entry, set))
                    age.note(accepted: set)
                case .refused(let refusal):
                    try note(.refused(refusal), of: item)
                    works[items[item].request]?.forgetFollowed(from: item)
                    works[items[item].request]?.follow(items[item].set, refusal, at: item)
                    for (later, _) in waiting[(position + 1)...] { judge(later) }
                }
                if case .refused = outcome { break }
            }
        }
    }

    private func carryOut(
        _ waiting: [(item: Int, verdict: Verdict)]
    ) throws(StorageFault) -> [SetOutcome] {
        var carried: [SetWork] = []
        for (_, verdict) in waiting {
            if case .acceptable(let work) = verdict { carried.append(work) }
        }
        return carried.isEmpty ? [] : try storage.apply(carried)
    }

    private mutating func note(_ verdict: Verdict, of position: Int) throws(StorageFault) {
        let item = items[position]
        switch verdict {
        case .accepted(let revision): works[item.request]?.repeats.append(revision)
        case .repeated(let refusal): works[item.request]?.refuse(item.set, refusal)
        case .refused(let refusal):
            works[item.request]?.refuse(item.set, refusal)
            guard !refusal.isRetryable else { return }
            try storage.remember(refusal, of: item.factsRequest, now: now)
        case .acceptable:
            preconditionFailure("a set that is carried out has an outcome")
        }
    }
}
