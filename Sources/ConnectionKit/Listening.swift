/// What a listener tells.
public enum ListeningEvent<Message: Sendable>: Sendable {
    /// It listens from now on. What was said before may have been missed: look for yourself.
    case listening
    case message(Message)
    /// The connection was lost, or could not be made; another try follows by itself.
    case lost(any Error)
}

/// Listens on a connection of its own, for as long as somebody wants to hear.
public enum Listening {
    /// Messages that wait to be taken; further ones are dropped, and `listening` says so.
    public static let longestQueue = 1_024

    /// - Parameters:
    ///   - make: Makes a connection that listens; may block.
    ///   - next: Waits for messages, as long as is said where it is; an empty answer means that the
    ///     time is over, or that it was woken.
    /// - Returns: Events without end, except that an error which does not pass ends them after
    ///   `lost`. Letting go of the stream, or cancelling who reads it, ends the connection.
    public static func events<Connection: Connectable, Message: Sendable>(
        label: String, pace: Pace = .system, backoff: Backoff = Backoff(),
        make: @escaping @Sendable () throws -> Connection,
        next: @escaping @Sendable (Connection, Duration?) throws -> [Message]
    ) -> AsyncStream<ListeningEvent<Message>> {
        let (stream, continuation) = AsyncStream<ListeningEvent<Message>>.makeStream(
            bufferingPolicy: .bufferingOldest(longestQueue))
        let ear = Ear(
            label: label, pace: pace, backoff: backoff, make: make, next: next,
            out: continuation)
        let task = Task { await ear.listen() }
        continuation.onTermination = { _ in
            task.cancel()
        }
        return stream
    }
}

/// The actor behind a stream of events.
private actor Ear<Connection: Connectable, Message: Sendable> {
    private let executor: QueueExecutor
    private let pace: Pace
    private var backoff: Backoff
    private let make: @Sendable () throws -> Connection
    private let next: @Sendable (Connection, Duration?) throws -> [Message]
    private let out: AsyncStream<ListeningEvent<Message>>.Continuation
    /// Something was dropped since the reader was last told to look for itself.
    private var hasDropped = false

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        executor.asUnownedSerialExecutor()
    }

    init(
        label: String, pace: Pace, backoff: Backoff,
        make: @escaping @Sendable () throws -> Connection,
        next: @escaping @Sendable (Connection, Duration?) throws -> [Message],
        out: AsyncStream<ListeningEvent<Message>>.Continuation
    ) {
        executor = QueueExecutor(label: label)
        self.pace = pace
        self.backoff = backoff
        self.make = make
        self.next = next
        self.out = out
    }

    func listen() async {
        while !Task.isCancelled {
            do {
                try await hear()
            } catch {
                guard !Task.isCancelled else { break }
                tell(.lost(error))
                guard Connection.mayPass(error) else { break }
            }
            var generator = Pace.Generator(pace: pace)
            let wait = backoff.failed(using: &generator)
            guard (try? await pace.sleep(wait)) != nil else { break }
        }
        out.finish()
    }

    /// One connection, from its beginning to its loss.
    private func hear() async throws {
        let sign = WorkSign()
        try await withTaskCancellationHandler {
            let connection = try make()
            defer { connection.close() }
            guard sign.begin(connection.wake) else { return }
            defer { sign.end() }
            backoff.succeeded()
            tell(.listening)
            while !Task.isCancelled {
                // Who was too slow is told soon after, even when no more is said.
                let limit: Duration? = hasDropped ? .milliseconds(100) : nil
                for message in try next(connection, limit) { tell(.message(message)) }
                catchUp()
            }
        } onCancel: {
            sign.cancel()
        }
    }

    private func tell(_ event: ListeningEvent<Message>) {
        catchUp()
        guard !hasDropped else { return }
        if case .dropped = out.yield(event) { hasDropped = true }
    }

    /// Says that something was dropped, once there is room to.
    private func catchUp() {
        if hasDropped, case .enqueued = out.yield(.listening) { hasDropped = false }
    }
}
