/// An event of a listener.
public enum ListeningEvent<Message: Sendable>: Sendable {
    /// The listener listens from now on. Earlier messages may have been missed, so the reader must
    /// look for itself.
    case listening
    case message(Message)
    /// The connection was lost, or could not be made. Another attempt follows automatically.
    case lost(any Error)
}

/// Listens on its own connection, for as long as the events are read.
public enum Listening {
    /// The maximum number of messages that wait to be read. Further ones are dropped, and the event
    /// `listening` reports this.
    public static let longestQueue = 1_024

    /// - Parameters:
    ///   - make: Makes a connection that listens. It may block.
    ///   - next: Waits for messages, at most for the given duration. An empty result means that the
    ///     time is over, or that the wait was ended.
    /// - Returns: The events. They end only after a permanent error, which is reported by `lost`.
    ///   The connection ends when the stream is released or its reader is cancelled.
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
    /// Whether a message was dropped since the last `listening`.
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

    /// Listens on one connection until it is lost.
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
                // A reader that was too slow is notified soon, even if no message follows.
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

    /// Reports dropped messages once there is room for the event.
    private func catchUp() {
        if hasDropped, case .enqueued = out.yield(.listening) { hasDropped = false }
    }
}
