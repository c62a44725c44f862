internal import Foundation
internal import Synchronization

/// Performs requests, and reads their answers as they arrive, or whole. It follows no redirect.
///
/// A redirect would send the token and the edits to another address, possibly unencrypted. They are
/// only for the address that the app gave.
final class StreamingSession: Sendable {
    /// The loader: libcurl on Linux (decision 0160), URLSession on other platforms.
    let loader = Loader()
    private let underWay = UnderWay()
    private let sleep: @Sendable (Duration) async throws -> Void

    private final class UnderWay: Sendable {
        let count = Mutex(0)
    }

    /// Creates a session.
    /// - Parameter sleep: Waits for a duration; a test can replace it.
    init(
        sleep: @escaping @Sendable (Duration) async throws -> Void = {
            try await Task.sleep(for: $0)
        }
    ) {
        self.sleep = sleep
    }

    /// The number of running requests.
    var count: Int { underWay.count.withLock(\.self) }

    /// Sends a request and waits for the head of its answer, whatever its status is.
    /// - Throws: `TransportFailure` if no head arrives.
    func start(_ request: StreamingRequest) async throws(TransportFailure) -> StreamingAnswer {
        var request = request
        if !request.inflates { request.headers["Accept-Encoding"] = "identity" }
        underWay.count.withLock { $0 += 1 }
        let incoming = IncomingBytes(request, load: loader.load(request)) { [underWay] in
            underWay.count.withLock { $0 -= 1 }
        }
        let chunks = ByteChunks(incoming)
        incoming.begin(sleep: sleep)
        let head = try await incoming.head()
        return StreamingAnswer(status: head.status, headers: head.headers, chunks: chunks)
    }
}
