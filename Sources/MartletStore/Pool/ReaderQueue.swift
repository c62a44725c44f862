internal import Dispatch
internal import Synchronization

/// Assigns readers, by their numbers, to callers: first come, first served. Each caller gets the
/// reader that is idle first.
final class ReaderQueue: Sendable {
    private struct Waiter {
        let ticket: Int
        let resume: @Sendable (Result<Int, StoreError>) -> Void
    }

    private struct State {
        var idle: [Int]
        var waiting: [Waiter] = []
        var tickets = 0
        /// The tickets of tasks that were cancelled before they began to wait.
        var cancelled: Set<Int> = []
    }

    private let state: Mutex<State>

    init(count: Int) {
        state = Mutex(State(idle: Array((0..<count).reversed())))
    }

    /// Waits for a reader; ends the wait if the task is cancelled.
    /// - Returns: The reader's number, to be given back with `leave`.
    /// - Throws: `StoreError` `.cancelled`.
    func take() async throws -> Int {
        let ticket = newTicket()
        defer { state.withLock { _ = $0.cancelled.remove(ticket) } }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                join(ticket) { continuation.resume(with: $0.mapError { $0 as any Error }) }
            }
        } onCancel: {
            cancel(ticket)
        }
    }

    /// Waits for a reader, and blocks the thread meanwhile.
    func takeBlocking() -> Int {
        let gathering = Gathering(count: 1)
        let isGiven = DispatchSemaphore(value: 0)
        join(count: 1, gathering) { isGiven.signal() }
        isGiven.wait()
        return gathering.readers[0]
    }

    /// Waits for all readers, after the callers that already wait; later callers wait for `leave`.
    func takeAll(_ count: Int) async -> [Int] {
        let gathering = Gathering(count: count)
        await withCheckedContinuation { continuation in
            join(count: count, gathering) { continuation.resume() }
        }
        return gathering.readers
    }

    /// Makes a reader available again.
    func leave(_ index: Int) {
        let next = state.withLock { state -> Waiter? in
            guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
            state.idle.append(index)
            return nil
        }
        next?.resume(.success(index))
    }

    /// The readers gathered for one caller.
    private final class Gathering: Sendable {
        private let count: Int
        private let gathered = Mutex<[Int]>([])

        init(count: Int) { self.count = count }

        var readers: [Int] { gathered.withLock { $0 } }

        /// Adds a reader.
        /// - Returns: Whether it was the last one.
        func add(_ reader: Int) -> Bool {
            gathered.withLock {
                $0.append(reader)
                return $0.count == count
            }
        }
    }

    /// Joins the queue `count` times at once, so that two callers that want all readers do not each
    /// hold some of them.
    private func join(
        count: Int, _ gathering: Gathering, whenComplete: @escaping @Sendable () -> Void
    ) {
        let isComplete = state.withLock { state in
            var isComplete = false
            for _ in 0..<count {
                guard let reader = state.idle.popLast() else {
                    state.tickets += 1
                    state.waiting.append(
                        Waiter(ticket: state.tickets) { given in
                            if case .success(let reader) = given, gathering.add(reader) {
                                whenComplete()
                            }
                        })
                    continue
                }
                isComplete = gathering.add(reader)
            }
            return isComplete
        }
        if isComplete { whenComplete() }
    }

    private func newTicket() -> Int {
        state.withLock {
            $0.tickets += 1
            return $0.tickets
        }
    }

    private func join(
        _ ticket: Int, _ resume: @escaping @Sendable (Result<Int, StoreError>) -> Void
    ) {
        let given = state.withLock { state -> Result<Int, StoreError>? in
            guard !state.cancelled.contains(ticket) else {
                return .failure(CancellationFlag.cancelled)
            }
            if let reader = state.idle.popLast() { return .success(reader) }
            state.waiting.append(Waiter(ticket: ticket, resume: resume))
            return nil
        }
        if let given { resume(given) }
    }

    private func cancel(_ ticket: Int) {
        let waiter = state.withLock { state -> Waiter? in
            guard let index = state.waiting.firstIndex(where: { $0.ticket == ticket }) else {
                state.cancelled.insert(ticket)
                return nil
            }
            return state.waiting.remove(at: index)
        }
        waiter?.resume(.failure(CancellationFlag.cancelled))
    }
}
