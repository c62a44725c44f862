internal import Dispatch
internal import MartletModel
internal import MartletProtocol
internal import Synchronization

/// A request for a `WriterQueue`.
protocol QueuedRequest: Sendable {
    /// The number of the request's change sets.
    var setCount: Int { get }
    /// The identifiers of the request's change sets.
    var identifiers: [String] { get }
    /// The identifiers that the request's change sets depend on, without those that precede them in
    /// the request.
    var dependencies: [String] { get }
    /// The party that sent the request.
    var party: String { get }
}

/// Carries out the batches of a `WriterQueue`, on the queue's thread.
protocol BatchWriter: Sendable {
    associatedtype Request: QueuedRequest
    associatedtype Answer: Sendable

    /// Returns the identifiers that have not been decided.
    func undecided(_ identifiers: [String]) -> [String]
    /// Carries out a batch, and returns one response for each request.
    func write(_ requests: [Request]) -> [Result<Answer, Problem>]
    /// Does a small step of background work, and returns true if there is more. Called when all
    /// submitted requests are done.
    func stepInBackground() -> Bool
}

/// Collects requests and hands them to the writer in batches (group commit).
///
/// While the writer carries out one batch, the next one collects. There is no timer, so a lone
/// request does not wait. One thread writes at a time. Parties take turns, so a party's request
/// waits for at most one request of each other party.
///
/// A request that names change sets which have not arrived waits outside the queue until they have
/// been decided or its time is up. The number of these requests is limited, in total and for each
/// party, so that they do not keep out other requests.
final class WriterQueue<Writer: BatchWriter>: Sendable {
    typealias Request = Writer.Request
    typealias Response = Result<Writer.Answer, Problem>

    struct Limits: Sendable {
        /// The most change sets in one batch. The sets of one request stay together, so a single
        /// request may exceed it.
        var batchSets = 32
        /// The most requests that wait for the writer. The queue refuses one more.
        var waitingRequests = 2_048
        /// The most requests that wait for other sets. One more does not wait, and is refused at
        /// once because the other set is missing.
        var deferredRequests = 1_024
        /// The same limit for the requests of one party.
        var deferredRequestsOfParty = 64
        /// The most change sets that wait. With more, the queue takes no further request.
        var waitingSets = 100_000
        /// The same limits for the requests and change sets of one party.
        var waitingRequestsOfParty = 1_024
        var waitingSetsOfParty = 50_000
        /// The time for which a request waits for the sets that it depends on.
        var dependencyWait = DispatchTimeInterval.seconds(2)
    }

    private struct Job: Sendable {
        let number: UInt64
        let request: Request
        let setCount: Int
        let dependencies: [String]
        let party: String
        let continuation: CheckedContinuation<Response, Never>
        var hasWaited = false
    }

    private struct State {
        var waiting = PartyTurns<Job>()
        var waitingSets = 0
        /// The waiting requests and sets of each party.
        var shares: [String: (requests: Int, sets: Int)] = [:]
        /// The requests that wait for other sets, by number.
        var deferred: [UInt64: (job: Job, missing: Set<String>)] = [:]
        var deferredByParty: [String: Int] = [:]
        var lastNumber: UInt64 = 0
        var isRunning = false
        /// True if a step of background work is on its way.
        var isStepping = false
        var isStopped = false
        var ended: [CheckedContinuation<Void, Never>] = []

        var depth: Int { waiting.count + deferred.count }

        /// Counts a job that begins to wait (1) or ends its wait (-1).
        mutating func count(_ job: Job, _ sign: Int) {
            waitingSets += sign * job.setCount
            var share = shares[job.party] ?? (0, 0)
            share.requests += sign
            share.sets += sign * job.setCount
            shares[job.party] = share.requests > 0 ? share : nil
        }
    }

    private let queue: DispatchQueue
    private let writer: Writer
    private let limits: Limits
    private let state = Mutex(State())

    /// Makes an empty queue.
    ///
    /// - Parameter queue: The writer's thread, as a serial queue.
    init(to writer: Writer, on queue: DispatchQueue, limits: Limits = Limits()) {
        self.queue = queue
        self.writer = writer
        self.limits = limits
    }

    /// The number of waiting requests, with those that wait for other sets.
    var depth: Int { state.withLock { $0.depth } }

    /// Waits for the request's turn, and returns its response.
    func submit(_ request: Request) async -> Response {
        let (setCount, dependencies) = (request.setCount, request.dependencies)
        let party = request.party
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
                    number: state.lastNumber, request: request, setCount: setCount,
                    dependencies: dependencies, party: party, continuation: continuation)
                enqueue(job, &state)
                return nil
            }
            if let refusal { continuation.resume(returning: .failure(refusal)) }
        }
    }

    /// Refuses new requests, and returns when all earlier ones have their responses. Requests that
    /// wait for other sets go to the writer as they are.
    func stop() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isIdle = state.withLock { state in
                state.isStopped = true
                for number in state.deferred.keys.sorted() { resume(number, &state) }
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
            if batch.isEmpty { return scheduleStep() }
            var ready: [Job] = []
            for job in batch where !parks(job, behind: ready) { ready.append(job) }
            guard !ready.isEmpty else { continue }
            let responses = writer.write(ready.map(\.request))
            precondition(responses.count == ready.count, "one response for each request")
            for (job, response) in zip(ready, responses) {
                job.continuation.resume(returning: response)
            }
            release(decidedBy: ready)
        }
    }

    /// Returns the next batch. It is empty if there is nothing to do, and the writer has then
    /// stopped running.
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

    /// A step goes behind the tasks that the writer's thread already has, so that a request never
    /// waits for more than one step.
    private func scheduleStep() {
        let isDue = state.withLock { state in
            guard !state.isStopped, !state.isStepping else { return false }
            state.isStepping = true
            return true
        }
        if isDue { queue.async { self.stepInBackground() } }
    }

    private func stepInBackground() {
        let isIdle = state.withLock { state in
            state.isStepping = false
            return !state.isRunning && !state.isStopped
        }
        // If a request arrived meanwhile, its batch schedules the step again.
        if isIdle, writer.stepInBackground() { scheduleStep() }
    }

    /// Defers a job if it depends on sets that have not arrived.
    private func parks(_ job: Job, behind ready: [Job]) -> Bool {
        guard !job.dependencies.isEmpty, !job.hasWaited else { return false }
        let alongside = Set(ready.flatMap(\.request.identifiers))
        let missing = Set(writer.undecided(job.dependencies)).subtracting(alongside)
        guard !missing.isEmpty else { return false }
        let isParked = state.withLock { state in
            let ofParty = state.deferredByParty[job.party, default: 0]
            guard !state.isStopped, state.deferred.count < limits.deferredRequests,
                ofParty < limits.deferredRequestsOfParty
            else { return false }
            state.deferred[job.number] = (job, missing)
            state.deferredByParty[job.party] = ofParty + 1
            return true
        }
        guard isParked else { return false }
        queue.asyncAfter(deadline: .now() + limits.dependencyWait) {
            self.state.withLock { self.resume(job.number, &$0) }
        }
        return true
    }

    private func release(decidedBy jobs: [Job]) {
        guard state.withLock({ !$0.deferred.isEmpty }) else { return }
        let decided = Set(jobs.flatMap(\.request.identifiers))
        state.withLock { state in
            for number in state.deferred.keys.sorted() {
                state.deferred[number]?.missing.subtract(decided)
                if state.deferred[number]?.missing.isEmpty == true { resume(number, &state) }
            }
        }
    }

    private func resume(_ number: UInt64, _ state: inout State) {
        guard var job = state.deferred.removeValue(forKey: number)?.job else { return }
        job.hasWaited = true
        let left = state.deferredByParty[job.party, default: 1] - 1
        state.deferredByParty[job.party] = left > 0 ? left : nil
        enqueue(job, &state)
    }
}
