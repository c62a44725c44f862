internal import Synchronization

/// Fetches the bytes of one request.
protocol Load: Sendable {
    /// Sends the request and passes its answer to `incoming`.
    func begin(_ incoming: IncomingBytes)
    func cancel()
    /// Suspends the answer.
    func holdUp()
    func goOn()
    /// Calls `IncomingBytes.sent` with the number of bytes of the request that have been sent.
    func look()
}

/// A bounded buffer for the bytes of an answer that have arrived but were not read yet.
///
/// The network puts bytes in, and one reader takes them out. The request ends at the first of these
/// events: the end of the answer, a failure, silence, cancellation, or the end of the reader. If
/// too many bytes are unread, the connection is suspended.
final class IncomingBytes: Sendable {
    struct Head: Sendable {
        var status: Int
        var headers: [String: String]
    }

    private typealias HeadResult = Result<Head, TransportFailure>
    private typealias ChunkResult = Result<[UInt8]?, TransportFailure>

    private struct State {
        var head: Head?
        var headReader: CheckedContinuation<HeadResult, Never>?
        var chunks: [[UInt8]] = []
        /// The index of the first chunk that was not taken yet.
        var first = 0
        var bufferedBytes = 0
        var reader: CheckedContinuation<ChunkResult, Never>?
        var isHeldUp = false
        /// The number of bytes of the request's body that have been sent.
        var sent = 0
        /// The number of arrivals: heads, chunks, and reports of sent bytes.
        var arrivals: UInt64 = 0
        /// The outcome, once the request is over; nil before.
        var end: Result<Void, TransportFailure>?
        var watchdog: Task<Void, Never>?
    }

    private let load: any Load
    private let request: StreamingRequest
    private let state = Mutex(State())
    private let ended: @Sendable () -> Void

    /// - Parameter ended: Called once, when the request is over.
    init(
        _ request: StreamingRequest, load: any Load, ended: @escaping @Sendable () -> Void = {}
    ) {
        self.request = request
        self.load = load
        self.ended = ended
    }

    /// Starts the watchdog and the request.
    func begin(sleep: @escaping @Sendable (Duration) async throws -> Void) {
        let steps = 4
        let step = request.silence / steps
        let stepsBeforeHead = request.silenceBeforeHead.map { Int(($0 / step).rounded(.up)) }
        let watchdog = Task { [weak self] in
            var quiet = 0
            var seen: UInt64 = 0
            var most = steps
            while quiet < most {
                guard (try? await sleep(step)) != nil, let self else { return }
                let now = state.withLock(\.self)
                quiet = now.arrivals == seen && !now.isHeldUp ? quiet + 1 : 0
                seen = now.arrivals
                let isAwaited = now.head == nil && now.sent == request.body?.count ?? 0
                most = isAwaited ? stepsBeforeHead ?? steps : steps
                if now.head == nil, !isAwaited { load.look() }
            }
            self?.fail(
                TransportFailure(message: "The server was silent for too long."))
        }
        let isOver = state.withLock { state in
            state.watchdog = watchdog
            return state.end != nil
        }
        if isOver { watchdog.cancel() } else { load.begin(self) }
    }

    /// The number of bytes that wait for the reader.
    var bufferedBytes: Int { state.withLock { $0.bufferedBytes } }

    // MARK: - From the network

    /// Notes the number of bytes of the request's body that have been sent.
    func sent(_ bytes: Int) {
        let isMore = state.withLock { state in
            guard bytes > state.sent else { return false }
            state.sent = bytes
            state.arrivals += 1
            return true
        }
        if isMore { request.progress() }
    }

    /// Whether the answer has ended or is no longer wanted.
    var isOver: Bool { state.withLock { $0.end != nil } }

    /// Whether the connection is to be suspended.
    var isHeldUp: Bool { state.withLock(\.isHeldUp) }

    func receive(_ head: Head) {
        let reader = state.withLock { state in
            state.arrivals += 1
            state.head = head
            defer { state.headReader = nil }
            return state.headReader
        }
        reader?.resume(returning: .success(head))
        request.progress()
    }

    func take(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        let reader: CheckedContinuation<ChunkResult, Never>? = state.withLock { state in
            guard state.end == nil else { return nil }
            state.arrivals += 1
            if let reader = state.reader {
                state.reader = nil
                return reader
            }
            state.chunks.append(bytes)
            state.bufferedBytes += bytes.count
            if !state.isHeldUp, state.bufferedBytes > request.bufferBytes {
                state.isHeldUp = true
                // The lock is held here, because the reader's `goOn` must not overtake this call.
                load.holdUp()
            }
            return nil
        }
        reader?.resume(returning: .success(bytes))
        request.progress()
    }

    /// Ends the request successfully: the answer is complete.
    func finish() {
        end(.success(()))
    }

    func fail(_ failure: TransportFailure) {
        end(.failure(failure))
    }

    private func end(_ end: Result<Void, TransportFailure>) {
        let before: State? = state.withLock { state in
            guard state.end == nil else { return nil }
            defer { (state.headReader, state.reader, state.watchdog) = (nil, nil, nil) }
            state.end = end
            return state
        }
        guard let before else { return }
        before.watchdog?.cancel()
        load.cancel()
        before.headReader?.resume(returning: Self.withoutHead(end))
        before.reader?.resume(returning: end.map { nil })
        ended()
    }

    private static func withoutHead(_ end: Result<Void, TransportFailure>) -> HeadResult {
        end.flatMap { .failure(TransportFailure(message: "The server's answer had no head.")) }
    }

    // MARK: - To the reader

    /// Waits for the head of the answer.
    func head() async throws(TransportFailure) -> Head {
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { (reader: CheckedContinuation<HeadResult, Never>) in
                let known: HeadResult? = state.withLock { state in
                    if let head = state.head { return .success(head) }
                    if let end = state.end { return Self.withoutHead(end) }
                    state.headReader = reader
                    return nil
                }
                if let known { reader.resume(returning: known) }
            }
        } onCancel: {
            abandon()
        }
        return try result.get()
    }

    /// Waits for the next bytes; returns nil at the end of the answer.
    func next() async throws(TransportFailure) -> [UInt8]? {
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { (reader: CheckedContinuation<ChunkResult, Never>) in
                if let known = take(orWait: reader) { reader.resume(returning: known) }
            }
        } onCancel: {
            abandon()
        }
        return try result.get()
    }

    private func take(orWait reader: CheckedContinuation<ChunkResult, Never>) -> ChunkResult? {
        state.withLock { state in
            if state.first < state.chunks.count {
                let chunk = state.chunks[state.first]
                state.chunks[state.first] = []
                state.first += 1
                if state.first == state.chunks.count {
                    state.chunks.removeAll(keepingCapacity: true)
                    state.first = 0
                }
                state.bufferedBytes -= chunk.count
                if state.isHeldUp, state.bufferedBytes <= request.bufferBytes / 2 {
                    state.isHeldUp = false
                    load.goOn()
                }
                return .success(chunk)
            }
            if let end = state.end { return end.map { nil } }
            precondition(state.reader == nil, "An answer is read by one reader.")
            state.reader = reader
            return nil
        }
    }

    /// Ends the request, because nobody reads the rest.
    func abandon() {
        fail(TransportFailure(message: "The request was cancelled."))
    }
}
