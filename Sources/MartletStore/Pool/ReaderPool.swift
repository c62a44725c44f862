internal import SQLiteKit
internal import Synchronization

/// Reading connections to one file, each on a queue of its own.
package final class ReaderPool: Sendable {
    private let readers: [Confined<Session>]
    private let state: Mutex<State>

    private struct State {
        /// Work given to each reader and not yet done.
        var loads: [Int]
        /// The work each reader is running.
        var running: [Int?]
        /// Work given and not begun; what is missing here was cancelled meanwhile.
        var waiting: Set<Int> = []
        var interrupters: [Interrupter]
        var last = 0
    }

    /// - Parameter count: At least one reader is made.
    package init(
        count: Int, label: String = "martlet.reader", make: () throws -> sending Session
    ) throws {
        var readers: [Confined<Session>] = []
        var interrupters: [Interrupter] = []
        for _ in 0..<max(1, count) {
            let (reader, interrupter) = try Self.confined(label: label, make)
            readers.append(reader)
            interrupters.append(interrupter)
        }
        self.readers = readers
        state = Mutex(
            State(
                loads: Array(repeating: 0, count: readers.count),
                running: Array(repeating: nil, count: readers.count),
                interrupters: interrupters))
    }

    private static func confined(
        label: String, _ make: () throws -> sending Session
    ) throws -> (Confined<Session>, Interrupter) {
        let made = try make()
        let interrupter = made.connection.interrupter
        return (Confined(label: label, made), interrupter)
    }

    /// Runs `body` in one read transaction, on the reader with the least to do. A cancelled task
    /// stops its query.
    package func read<Result: Sendable>(
        _ body: @escaping @Sendable (ReadContext) throws -> Result
    ) async throws -> Result {
        try await run { session in try Self.read(session, recorder: nil, body) }
    }

    /// Reads, and tells what part of the database was read.
    package func observedRead<Result: Sendable>(
        _ body: @escaping @Sendable (ReadContext) throws -> Result
    ) async throws -> (Result, DatabaseRegion) {
        try await run { session in
            let recorder = RegionRecorder()
            let result = try Self.read(session, recorder: recorder, body)
            return (result, recorder.region)
        }
    }

    /// Opens all readers anew, after a change to what they were opened with.
    package func reopen(_ make: @escaping @Sendable () throws -> sending Session) async throws {
        for (index, reader) in readers.enumerated() {
            try await reader.run { session in
                session = try make()
                let interrupter = session.connection.interrupter
                self.state.withLock { $0.interrupters[index] = interrupter }
            }
        }
    }

    private static func read<Result>(
        _ session: Session, recorder: RegionRecorder?,
        _ body: (ReadContext) throws -> Result
    ) throws -> Result {
        session.begin()
        do {
            try session.connection.run("BEGIN")
        } catch {
            throw StoreError(error)
        }
        defer { session.connection.rollback() }
        let context = ReadContext(session: session, recorder: recorder)
        defer { context.end() }
        return try body(context)
    }

    private func run<Result: Sendable>(
        _ body: @escaping @Sendable (Session) throws -> Result
    ) async throws -> Result {
        let (index, number) = state.withLock { state in
            var best = 0
            for index in state.loads.indices where state.loads[index] < state.loads[best] {
                best = index
            }
            state.loads[best] += 1
            state.last += 1
            state.waiting.insert(state.last)
            return (best, state.last)
        }
        return try await withTaskCancellationHandler {
            try await readers[index].run { session in
                defer { self.end(index) }
                try self.begin(number, on: index)
                return try body(session)
            }
        } onCancel: {
            cancel(number, on: index)
        }
    }

    private func begin(_ number: Int, on index: Int) throws {
        let isWanted = state.withLock { state in
            guard state.waiting.remove(number) != nil else { return false }
            state.running[index] = number
            return true
        }
        guard isWanted else { throw StoreError(.cancelled, "The task was cancelled.") }
    }

    private func end(_ index: Int) {
        state.withLock { state in
            state.loads[index] -= 1
            state.running[index] = nil
        }
    }

    private func cancel(_ number: Int, on index: Int) {
        state.withLock { state in
            state.waiting.remove(number)
            // Under the lock, so that the work cannot end and the next begin in between.
            if state.running[index] == number { state.interrupters[index].interrupt() }
        }
    }
}
