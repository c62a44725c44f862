/// One connection on a queue of its own, made when it is first needed and again after it was lost.
///
/// Pieces of work run one after another and may block: they hold the queue's thread and none of the
/// cooperative pool. Work is never repeated: when a connection is lost under it, its error says what
/// is known, and the caller decides.
public actor KeptConnection<Connection: Connectable> {
    private let executor: QueueExecutor
    private let make: @Sendable () throws -> Connection
    private let pace: Pace
    private let patience: Duration
    private var backoff: Backoff
    private var connection: Connection?
    /// Before this moment no connection is tried.
    private var resting: Duration?
    private var lastFailure: (any Error)?
    private var isClosed = false
    /// Connections made so far.
    public private(set) var connectionsMade = 0

    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        executor.asUnownedSerialExecutor()
    }

    /// - Parameters:
    ///   - label: Names the queue in a debugger.
    ///   - patience: How long a piece of work waits, in all, for a server that does not answer.
    ///   - make: Makes a connection, on the queue; may block.
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

    /// Runs `body` on the queue, with a connection that answered last time it was looked at.
    ///
    /// Cancelling the task ends a wait for the server, and asks the connection to give up what it
    /// waits for; `body` then throws the connection's own error.
    /// - Throws: `KeptConnectionClosed` after `close`; `CancellationError` before `body` has begun;
    ///   the last error of connecting, when that does not pass or patience runs out; what `body`
    ///   throws.
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

    /// Lets go of the connection, after the work that was asked for before. Later work is refused.
    public func close() {
        isClosed = true
        connection?.close()
        connection = nil
    }

    /// The connection, made where there is none. Others may come between while this waits.
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

/// The connection was closed by its owner; what was asked for came too late.
public struct KeptConnectionClosed: Error, Hashable, Sendable {
    public init() {}
}
