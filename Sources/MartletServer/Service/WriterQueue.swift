internal import Dispatch
internal import MartletModel
internal import MartletProtocol
internal import Synchronization

/// Collects what is to be written and hands it to the writer in batches: group commit.
///
/// While one batch is carried out, the next one collects; there is no timer, so a lone request does
/// not wait. One thread writes at a time. Parties take turns, so the requests of one wait for at most one
/// request of each other. A request that names change sets which have not arrived
/// waits outside the queue until they have been decided or its time is up. The number of these
/// requests is limited, in total and for each party, so that they keep out nobody's other requests.
final class WriterQueue<Item: Sendable, Answer: Sendable>: Sendable {
    typealias Verdict = Result<Answer, Problem>

    /// What the queue needs to know and do; `undecided` and `process` run on the writer's thread.
    struct Work: Sendable {
        /// The number of change sets of an item.
        var setCount: @Sendable (Item) -> Int
        /// The identifiers an item's change sets depend on, its own sets left out.
        var dependencies: @Sendable (Item) -> [String]
        /// The identifiers of an item's change sets.
        var identifiers: @Sendable (Item) -> [String]
        /// Returns the party that sent an item.
        var party: @Sendable (Item) -> String
        /// Those of the identifiers that have not been decided.
        var undecided: @Sendable ([String], Item) -> [String]
        /// Carries out a batch; one verdict for each item.
        var process: @Sendable ([Item]) -> [Verdict]
        /// Does a little of what nobody waits for, and says whether there is more of it; asked
        /// when all that was submitted is done.
        var rest: (@Sendable () -> Bool)?
    }

    struct Limits: Sendable {
        /// Change sets in one batch; the sets of one request stay together, so a batch may exceed
        /// it.
        var batchSets = 32
        /// The most requests that wait for the writer; one more is refused.
        var waitingRequests = 2_048
        /// The most requests that wait for other sets. One more does not wait, and is refused at
        /// once because the other set is missing.
        var parkedRequests = 1_024
        /// The same limit for the requests of one party.
        var parkedRequestsOfParty = 64
        /// Change sets waiting; with more, nothing further is taken.
        var waitingSets = 100_000
        /// The same limits for the requests and change sets of one party.
        var waitingRequestsOfParty = 1_024
        var waitingSetsOfParty = 50_000
        /// How long a request waits for the sets it depends on.
        var dependencyWait = DispatchTimeInterval.seconds(2)
    }

    private struct Job: Sendable {
        let number: UInt64
        let item: Item
        let setCount: Int
        let dependencies: [String]
        let party: String
        let continuation: CheckedContinuation<Verdict, Never>
        var hasWaited = false
    }

    private struct State {
        var waiting = PartyTurns<Job>()
        var waitingSets = 0
        /// What waits of each party.
        var shares: [String: (requests: Int, sets: Int)] = [:]
        /// By number.
        var parked: [UInt64: (job: Job, missing: Set<String>)] = [:]
        var parkedByParty: [String: Int] = [:]
        var lastNumber: UInt64 = 0
        var isRunning = false
        /// Whether a step of `rest` is on its way.
        var isResting = false
        var isStopped = false
        var ended: [CheckedContinuation<Void, Never>] = []

        var depth: Int { waiting.count + parked.count }

        /// Counts a job that begins to wait, or one that ends to.
        mutating func count(_ job: Job, _ sign: Int) {
            waitingSets += sign * job.setCount
            var share = shares[job.party] ?? (0, 0)
            share.requests += sign
            share.sets += sign * job.setCount
            shares[job.party] = share.requests > 0 ? share : nil
        }
    }

    private let queue: DispatchQueue
    private let work: Work
    private let limits: Limits
    private let state = Mutex(State())

    /// - Parameter queue: The writer's thread: a serial queue.
    init(queue: DispatchQueue, limits: Limits = Limits(), work: Work) {
        self.queue = queue
        self.work = work
        self.limits = limits
    }

    /// Requests waiting, those that wait for others included.
    var depth: Int { state.withLock { $0.depth } }

    /// Waits for the item's turn and its verdict.
    func submit(_ item: Item) async -> Verdict {
        let setCount = work.setCount(item)
        let dependencies = work.dependencies(item)
        let party = work.party(item)
        return await withCheckedContinuation { continuation in
            let refusal = state.withLock { state -> Problem? in
                if state.isStopped { return .stopping }
                guard state.waiting.count < limits.waitingRequests,
                    state.waitingSets < limits.waitingSets
                else {
                    return .busy("Too many changes are waiting to be written; try again.")
                }
                let share = state.shares[party] ?? (0, 0)
                guard share.requests < limits.waitingRequestsOfParty,
                    share.sets < limits.waitingSetsOfParty
                else {
                    return .busy("Too many of your changes are waiting to be written; try again.")
                }
                state.lastNumber += 1
                let job = Job(
                    number: state.lastNumber, item: item, setCount: setCount,
                    dependencies: dependencies, party: party, continuation: continuation)
                enqueue(job, &state)
                return nil
            }
            if let refusal { continuation.resume(returning: .failure(refusal)) }
        }
    }

    /// Refuses what comes from now on, and returns when everything before has its verdict. What
    /// waits for other sets goes in as it is.
    func stop() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isIdle = state.withLock { state in
                state.isStopped = true
                for number in state.parked.keys.sorted() { unpark(number, &state) }
                if state.isRunning { state.ended.append(continuation) }
                return !state.isRunning
            }
            if isIdle { continuation.resume() }
        }
    }

    private func enqueue(_ job: Job, _ state: inout State) {
        state.waiting.append(job, of: job.party)
        state.count(job, 1)
        guard !state.isRunning else { return }
        state.isRunning = true
        queue.async { self.drain() }
    }

    // MARK: - On the writer's thread

    private func drain() {
        while true {
            let batch = nextBatch()
            if batch.isEmpty { return scheduleRest() }
            var ready: [Job] = []
            for job in batch where !parks(job, behind: ready) { ready.append(job) }
            guard !ready.isEmpty else { continue }
            let verdicts = work.process(ready.map(\.item))
            precondition(verdicts.count == ready.count, "one verdict for each request")
            for (job, verdict) in zip(ready, verdicts) {
                job.continuation.resume(returning: verdict)
            }
            release(decidedBy: ready)
        }
    }

    /// Empty when there is nothing to do; the writer has then stopped running.
    private func nextBatch() -> [Job] {
        let (batch, ended) = state.withLock { state in
            var batch: [Job] = []
            var sets = 0
            while let next = state.waiting.first {
                sets += next.setCount
                guard batch.isEmpty || sets <= limits.batchSets else { break }
                state.waiting.removeFirst()
                state.count(next, -1)
                batch.append(next)
            }
            var ended: [CheckedContinuation<Void, Never>] = []
            if batch.isEmpty {
                state.isRunning = false
                swap(&ended, &state.ended)
            }
            return (batch, ended)
        }
        ended.forEach { $0.resume() }
        return batch
    }

    /// One step comes behind what is on the writer's thread already, so that a request never waits
    /// for more than one.
    private func scheduleRest() {
        guard work.rest != nil else { return }
        let isDue = state.withLock { state in
            guard !state.isStopped, !state.isResting else { return false }
            state.isResting = true
            return true
        }
        if isDue { queue.async { self.rest() } }
    }

    private func rest() {
        let isIdle = state.withLock { state in
            state.isResting = false
            return !state.isRunning && !state.isStopped
        }
        // Behind a request that came meanwhile it is asked for again.
        if isIdle, work.rest?() == true { scheduleRest() }
    }

    /// Sets a job aside if it depends on sets that have not arrived.
    private func parks(_ job: Job, behind ready: [Job]) -> Bool {
        guard !job.dependencies.isEmpty, !job.hasWaited else { return false }
        let alongside = Set(ready.flatMap { work.identifiers($0.item) })
        let missing = Set(work.undecided(job.dependencies, job.item)).subtracting(alongside)
        guard !missing.isEmpty else { return false }
        let isParked = state.withLock { state in
            let ofParty = state.parkedByParty[job.party, default: 0]
            guard !state.isStopped, state.parked.count < limits.parkedRequests,
                ofParty < limits.parkedRequestsOfParty
            else { return false }
            state.parked[job.number] = (job, missing)
            state.parkedByParty[job.party] = ofParty + 1
            return true
        }
        guard isParked else { return false }
        queue.asyncAfter(deadline: .now() + limits.dependencyWait) {
            self.state.withLock { self.unpark(job.number, &$0) }
        }
        return true
    }

    private func release(decidedBy jobs: [Job]) {
        guard state.withLock({ !$0.parked.isEmpty }) else { return }
        let decided = Set(jobs.flatMap { work.identifiers($0.item) })
        state.withLock { state in
            for number in state.parked.keys.sorted() {
                state.parked[number]?.missing.subtract(decided)
                if state.parked[number]?.missing.isEmpty == true { unpark(number, &state) }
            }
        }
    }

    private func unpark(_ number: UInt64, _ state: inout State) {
        guard var job = state.parked.removeValue(forKey: number)?.job else { return }
        job.hasWaited = true
        let left = state.parkedByParty[job.party, default: 1] - 1
        state.parkedByParty[job.party] = left > 0 ? left : nil
        enqueue(job, &state)
    }
}
