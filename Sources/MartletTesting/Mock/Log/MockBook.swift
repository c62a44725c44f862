internal import MartletModel
internal import MartletProtocol
internal import Synchronization

/// What a `MockServer` remembers: the requests, how often each step was used, and the log.
final class MockBook: Sendable {
    private struct State {
        var log: MockLog
        var uses: [Int]
        var requests: [MockRequest] = []
        var complaints: [String] = []
        var lastNumber = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    let script: MockScript
    private let state: Mutex<State>

    init(_ script: MockScript) {
        self.script = script
        var log = MockLog(schema: script.schema, sets: script.log)
        for (type, id) in script.largestIDs { log.reserve(type, upTo: id) }
        state = Mutex(
            State(
                log: log,
                uses: script.steps.map { _ in 0 }))
    }

    // MARK: - Requests

    /// A number for a request that has come.
    func number() -> Int {
        state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
    }

    /// Notes a request and chooses the step for it: the first in the script's order that is not
    /// used up and that the request fits.
    /// - Returns: nil where no step fits.
    func step(for request: MockRequest) -> MockStep? {
        state.withLock { state in
            var request = request
            let index = script.steps.indices.first { index in
                let step = script.steps[index]
                return step.endpoint.covers(request.endpoint)
                    && state.uses[index] < step.times ?? .max
                    && step.when.allSatisfy {
                        $0.complaint(about: request.value(at: $0.path)) == nil
                    }
            }
            guard let index else {
                if script.fallback == .refuse {
                    state.complaints.append(
                        "Request \(request.number), \(request.method) \(request.path), fits no step."
                    )
                }
                state.requests.append(request)
                return nil
            }
            let step = script.steps[index]
            state.uses[index] += 1
            request.step = step.name
            state.requests.append(request)
            for condition in step.expect {
                guard let complaint = condition.complaint(about: request.value(at: condition.path))
                else { continue }
                state.complaints.append("\(step.name), request \(request.number): \(complaint).")
            }
            return step
        }
    }

    /// All requests so far, in the order in which they were answered.
    var requests: [MockRequest] { state.withLock { $0.requests } }

    /// What is not yet as the script expects it.
    var verdict: MockVerdict {
        state.withLock { state in
            var complaints = state.complaints
            for (step, uses) in zip(script.steps, state.uses) {
                guard let times = step.times, uses < times, !step.isOptional else { continue }
                complaints.append("\(step.name) was used \(uses) of \(times) times.")
            }
            return MockVerdict(complaints: complaints)
        }
    }

    // MARK: - The log

    /// Asks or changes the log; whoever waits for a newer revision looks again.
    func withLog<Result: Sendable>(_ body: (inout MockLog) -> Result) -> Result {
        let (result, woken) = state.withLock { state in
            let before = state.log.revision
            let result = body(&state.log)
            guard state.log.revision > before else {
                return (result, [CheckedContinuation<Void, Never>]())
            }
            defer { state.waiting.removeAll() }
            return (result, state.waiting)
        }
        for continuation in woken { continuation.resume() }
        return result
    }

    /// Returns when the log has gone beyond a revision, `wake` was called, or the task is
    /// cancelled.
    func wait(beyond revision: Revision) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isThere = state.withLock { state in
                    if Task.isCancelled || state.log.revision > revision { return true }
                    state.waiting.append(continuation)
                    return false
                }
                if isThere { continuation.resume() }
            }
        } onCancel: {
            wake()
        }
    }

    /// As `wait(beyond:)`, for so many seconds at most.
    func wait(beyond revision: Revision, seconds: Int64) async {
        guard seconds > 0 else { return }
        await withTaskGroup { group in
            group.addTask { await self.wait(beyond: revision) }
            group.addTask { try? await Task.sleep(for: .seconds(seconds)) }
            await group.next()
            group.cancelAll()
        }
    }

    /// Lets everyone who waits look whether to go on.
    func wake() {
        let woken = state.withLock { state in
            defer { state.waiting.removeAll() }
            return state.waiting
        }
        for continuation in woken { continuation.resume() }
    }
}
