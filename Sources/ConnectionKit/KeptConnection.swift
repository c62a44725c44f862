/// One connection with its own queue. It is made when it is first needed, and again after it was
/// lost.
///
/// Pieces of work run one after another and may block: they hold the queue's thread, and none of
/// the cooperative pool. Work is never repeated. If the connection is lost during a piece of work,
/// the error says what is known, and the caller decides.
public actor KeptConnection<Connection: Connectable> {
    private let executor: QueueExecutor
    private let make: @Sendable () throws -> Connection
    private let pace: Pace
    private let patience: Duration
    private var backoff: Backoff
    private var connection: Connection?
    /// The moment before which no connection is tried; nil for none.
    private var resting: Duration?
    private var lastFailure: (any Error)?
    private var isClosed = false
    /// The number of connections made so far.
    public private(set) var connectionsMade = 0

    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        executor.asUnownedSerialExecutor()
    }

    /// - Parameters:
    ///   - label: The name of the queue in a debugger.
    ///   - patience: The total time for which a piece of work waits for a server that does not
    ///     answer.
    ///   - make: Makes a connection, on the queue. It may block.
    public init(
        label: String, pace: Pace = .system, backoff: Backoff = Backoff(),
        patience: Duration = .seconds(10), make: @escaping @Sendable () throws -> Connection
    ) {
        executor = QueueExecutor(label: label)
        self.make = make
        self.pace = pace
        self.backoff = backoff
        self.patience = patience
    }

    /// Runs `body` on the queue, with a connection that was usable at the last check.
    ///
    /// Cancelling the task ends a wait for the server, and asks the connection to give up what it
    /// waits for; `body` then throws the connection's own error.
    /// - Throws: `KeptConnectionClosed` after `close`; `CancellationError` before `body` has begun;
    ///   the last error of connecting, if it is permanent or the patience ends; the error of
    ///   `body`.
    public func run<Answer: Sendable>(
        _ body: @Sendable (Connection) throws -> Answer
    ) async throws -> Answer {
        let sign = WorkSign()
        return try await withTaskCancellationHandler {
            let connection = try await connected()
            guard sign.begin(connection.wake) else { throw CancellationError() }
            defer { sign.end() }
            return try body(connection)
        } onCancel: {
            sign.cancel()
        }
    }

    /// Closes the connection, after all earlier work. Later work is refused.
    public func close() {
        isClosed = true
        connection?.close()
        connection = nil
    }

    /// Returns the connection, and makes it if there is none. Other calls may run while this waits.
    private func connected() async throws -> Connection {
        let limit = pace.now() + patience
        while true {
            try Task.checkCancellation()
            guard !isClosed else { throw KeptConnectionClosed() }
            if let connection {
                if connection.isUsable() { return connection }
                connection.close()
                self.connection = nil
            }
            if let resting, case let now = pace.now(), now < resting {
                if let lastFailure, resting > limit { throw lastFailure }
                try await pace.sleep(resting - now)
                continue
            }
            do {
                connection = try make()
                connectionsMade += 1
                backoff.succeeded()
                resting = nil
                lastFailure = nil
            } catch {
                guard Connection.mayPass(error) else { throw error }
                lastFailure = error
                var generator = Pace.Generator(pace: pace)
                resting = pace.now() + backoff.failed(using: &generator)
            }
        }
    }
}

/// The error of work that came after the owner had closed the connection.
public struct KeptConnectionClosed: Error, Hashable, Sendable {
    public init() {}
}
