internal import SQLiteKit
internal import SystemKit

/// The reading connections to one file, each on its own queue.
package final class ReaderPool: Sendable {
    /// The readers; each is nil once the pool was closed.
    private let readers: [Confined<Session?>]
    private let line: ReaderQueue

    /// Opens the readers.
    /// - Parameter count: The number of readers; at least one is opened.
    /// - Throws: The error of `make`.
    package init(
        count: Int, label: String = "martlet.reader", make: () throws -> sending Session
    ) throws {
        var readers: [Confined<Session?>] = []
        for _ in 0..<max(1, count) { readers.append(try Self.confined(label: label, make)) }
        self.readers = readers
        line = ReaderQueue(count: readers.count)
    }

    private static func confined(
        label: String, _ make: () throws -> sending Session
    ) throws -> Confined<Session?> {
        Confined(label: label, try make())
    }

    /// Runs `body` in one read transaction, on the reader that is idle first. If the task is
    /// cancelled, its query stops, or its wait for a reader ends.
    /// - Throws: The error of `body`; `StoreError`, such as `.cancelled`, or `.misuse` once closed.
    package func read<Result: Sendable>(
        _ body: @escaping @Sendable (ReadContext) throws -> Result
    ) async throws -> Result {
        try await run { session in try Self.read(session, recorder: nil, body) }
    }

    /// Reads, and also returns which part of the database was read.
    /// - Parameter willRead: Called before the moment of the read is fixed.
    /// - Throws: The errors of `read`.
    package func observedRead<Result: Sendable>(
        willRead: @escaping @Sendable () -> Void,
        _ body: @escaping @Sendable (ReadContext) throws -> Result
    ) async throws -> (Result, DatabaseRegion) {
        try await run { session in
            let recorder = RegionRecorder()
            willRead()
            let result = try Self.read(session, recorder: recorder, body)
            return (result, recorder.region)
        }
    }

    /// Runs `body` in one read transaction, and blocks the thread until it has ended.
    /// - Throws: The error of `body`; `StoreError` `.misuse` on a confined queue, and once closed.
    package func readBlocking<Result>(_ body: (ReadContext) throws -> Result) throws -> Result {
        try ConfinedQueue.refuseNesting()
        let index = line.takeBlocking()
        defer { line.leave(index) }
        return try readers[index].runBlocking { session in
            try Self.read(try Self.open(session), recorder: nil, body)
        }
    }

    /// Reopens all readers, after a change to the file's tables.
    /// - Throws: The error of `make`; `StoreError` `.misuse` once closed.
    package func reopen(_ make: @escaping @Sendable () throws -> sending Session) async throws {
        for reader in readers {
            try await reader.run { session in
                _ = try Self.open(session)
                session = try make()
            }
        }
    }

    /// Closes all readers after their current work.
    package func close() async {
        let all = await line.takeAll(readers.count)
        for reader in readers { try? await reader.run { $0 = nil } }
        for index in all { line.leave(index) }
    }

    private static func open(_ session: Session?) throws -> Session {
        guard let session else {
            throw StoreError(.misuse, "The database was closed; open it again.")
        }
        return session
    }

    private static func read<Result>(
        _ session: Session, recorder: RegionRecorder?,
        _ body: (ReadContext) throws -> Result
    ) throws -> Result {
        do {
            try session.connection.beginReading()
            defer { session.connection.rollback() }
            try session.begin()
            let context = ReadContext(session: session, recorder: recorder)
            defer { context.end() }
            return try body(context)
        } catch {
            throw StoreError.of(error)
        }
    }

    private func run<Result: Sendable>(
        _ body: @escaping @Sendable (Session) throws -> Result
    ) async throws -> Result {
        let index = try await line.take()
        defer { line.leave(index) }
        return try await readers[index].runUnlessCancelled { session, sign in
            let session = try Self.open(session)
            return try session.stopping(by: sign) { try body(session) }
        }
    }
}
