internal import Foundation
internal import Synchronization

#if canImport(FoundationNetworking)
    internal import FoundationNetworking
#endif

/// What has come of one streaming request and was not read yet, with a bound.
///
/// URLSession's queue puts bytes in, one reader takes them out. Whatever ends it first (the
/// answer's end, a failure, silence, cancellation, the reader's going) ends the request too.
///
/// When too much lies unread the connection is held up, on Apple's platforms. On Linux a suspended
/// task begins its request anew when it is resumed and delivers everything twice (seen), and a
/// slow delegate holds nobody up; there the request ends instead, after what was kept, and
/// the reader asks anew from where it is.
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
        /// Those before are taken.
        var first = 0
        var bufferedBytes = 0
        var reader: CheckedContinuation<ChunkResult, Never>?
        var isHeldUp = false
        /// Counts whatever came.
        var arrivals: UInt64 = 0
        /// Set at the end; the failure where it was not the answer's end.
        var end: Result<Void, TransportFailure>?
        var watchdog: Task<Void, Never>?
    }

    private let task: URLSessionTask
    private let bufferBytes: Int
    private let state = Mutex(State())

    init(task: URLSessionTask, bufferBytes: Int) {
        self.task = task
        self.bufferBytes = bufferBytes
    }

    /// Begins to watch, and to load.
    func begin(silence: Duration, sleep: @escaping @Sendable (Duration) async throws -> Void) {
        let watchdog = Task { [weak self] in
            let steps = 4
            var quiet = 0
            var seen: UInt64 = 0
            while quiet < steps {
                guard (try? await sleep(silence / steps)) != nil, let self else { return }
                let (arrivals, isHeldUp) = state.withLock { ($0.arrivals, $0.isHeldUp) }
                quiet = arrivals == seen && !isHeldUp ? quiet + 1 : 0
                seen = arrivals
            }
            self?.fail(TransportFailure(message: "The connection was silent for too long."))
        }
        let isOver = state.withLock { state in
            state.watchdog = watchdog
            return state.end != nil
        }
        if isOver { watchdog.cancel() } else { task.resume() }
    }

    /// Bytes that wait for the reader.
    var bufferedBytes: Int { state.withLock { $0.bufferedBytes } }

    // MARK: - From the network

    func receive(_ head: Head) {
        let reader = state.withLock { state in
            state.arrivals += 1
            state.head = head
            defer { state.headReader = nil }
            return state.headReader
        }
        reader?.resume(returning: .success(head))
    }

    func receive(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        let (reader, isTooMuch) = state.withLock { state in
            guard state.end == nil else { return (nil, false) as Handover }
            state.arrivals += 1
            if let reader = state.reader {
                state.reader = nil
                return (reader, false)
            }
            state.chunks.append(bytes)
            state.bufferedBytes += bytes.count
            guard !state.isHeldUp, state.bufferedBytes > bufferBytes else { return (nil, false) }
            #if canImport(FoundationNetworking)
                return (nil, true)
            #else
                state.isHeldUp = true
                // Under the lock: the reader's `resume` must not overtake it.
                task.suspend()
                return (nil, false)
            #endif
        }
        reader?.resume(returning: .success(bytes))
        if isTooMuch {
            fail(TransportFailure(message: "More came than could be taken in."))
        }
    }

    private typealias Handover = (CheckedContinuation<ChunkResult, Never>?, Bool)

    /// The answer is complete.
    func finish() {
        end(.success(()))
    }

    func fail(_ failure: TransportFailure) {
        end(.failure(failure))
        task.cancel()
    }

    private func end(_ end: Result<Void, TransportFailure>) {
        let (headReader, reader, watchdog) = state.withLock { state in
            guard state.end == nil else { return (nil, nil, nil) as Readers }
            state.end = end
            defer { (state.headReader, state.reader, state.watchdog) = (nil, nil, nil) }
            return (state.headReader, state.reader, state.watchdog)
        }
        watchdog?.cancel()
        headReader?.resume(returning: Self.withoutHead(end))
        reader?.resume(returning: end.map { nil })
    }

    private typealias Readers = (
        CheckedContinuation<HeadResult, Never>?, CheckedContinuation<ChunkResult, Never>?,
        Task<Void, Never>?
    )

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

    /// The next bytes; nil at the end of the answer.
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
                if state.isHeldUp, state.bufferedBytes <= bufferBytes / 2 {
                    state.isHeldUp = false
                    task.resume()
                }
                return .success(chunk)
            }
            if let end = state.end { return end.map { nil } }
            precondition(state.reader == nil, "An answer is read by one reader.")
            state.reader = reader
            return nil
        }
    }

    /// Ends the request: nobody reads on.
    func abandon() {
        fail(TransportFailure(message: "The request was cancelled."))
    }
}
