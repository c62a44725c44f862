internal import MartletModel
internal import MartletProtocol
internal import Synchronization

/// The memory of a `MockServer`: the requests, the uses of each step, and the log.
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

    /// Returns the number of a new request.
    func number() -> Int {
        state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
    }

    /// Notes a request and returns its step: the first in the script's order that fits the request
    /// and is not used up.
    /// - Returns: The step; nil if none fits.
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

    /// The requests so far, in the order of their answers.
    var requests: [MockRequest] { state.withLock { $0.requests } }

    /// The expectations of the script that are not met so far.
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

    /// Reads or changes the log, and wakes the tasks that wait for a newer revision.
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

    /// Waits until the log is beyond a revision, `wake` is called, or the task is cancelled.
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

    /// Waits as `wait(beyond:)` does, for at most the given number of seconds.
    func wait(beyond revision: Revision, seconds: Int64) async {
        guard seconds > 0 else { return }
        await withTaskGroup { group in
            group.addTask { await self.wait(beyond: revision) }
            group.addTask { try? await Task.sleep(for: .seconds(seconds)) }
            await group.next()
            group.cancelAll()
        }
    }

    /// Wakes all waiting tasks, so that they check whether to continue.
    func wake() {
        let woken = state.withLock { state in
            defer { state.waiting.removeAll() }
            return state.waiting
        }
        for continuation in woken { continuation.resume() }
    }
}
