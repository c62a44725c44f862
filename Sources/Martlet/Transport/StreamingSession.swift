internal import Foundation
internal import Synchronization

/// Performs requests and reads their answers as they arrive, or whole. It follows no redirect.
///
/// A redirect would send token and edits on to another address, possibly in the clear. They are for
/// the one address that the app gave.
final class StreamingSession: Sendable {
    /// libcurl on Linux (decision 0160), URLSession elsewhere.
    let loader = Loader()
    private let underWay = UnderWay()
    private let sleep: @Sendable (Duration) async throws -> Void

    private final class UnderWay: Sendable {
        let count = Mutex(0)
    }

    /// - Parameter sleep: Waits; a test gives its own.
    init(
        sleep: @escaping @Sendable (Duration) async throws -> Void = {
            try await Task.sleep(for: $0)
        }
    ) {
        self.sleep = sleep
    }

    /// Requests under way.
    var count: Int { underWay.count.withLock(\.self) }

    /// Sends a request and waits for the head of its answer, whatever its status.
    /// - Throws: `TransportFailure` where none comes.
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
