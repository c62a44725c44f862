import Foundation
import HTTPKit
import Synchronization
import Waiting

/// An HTTP server of a test's own that answers each request with a stream.
final class StreamServer: Sendable {
    typealias Body = @Sendable (HTTPRequest, HTTPBodyWriter) async throws -> Void

    private let server: HTTPServer
    private let streams: Streams

    private final class Streams: Sendable {
        let open = Mutex(0)
    }

    init(
        _ contentType: String = "text/plain", headers: [HTTPField] = [], _ body: @escaping Body
    ) {
        let streams = Streams()
        self.streams = streams
        server = HTTPServer(options: HTTPServerOptions()) { request in
            var response = HTTPResponse(
                status: 200, headers: [HTTPField("Content-Type", contentType)] + headers)
            response.stream = { writer in
                streams.open.withLock { $0 += 1 }
                defer { streams.open.withLock { $0 -= 1 } }
                try await body(request, writer)
            }
            return response
        }
    }

    /// Answers under way.
    var open: Int { streams.open.withLock { $0 } }

    func start() async throws -> URL {
        let port = try await server.start()
        guard let url = URL(string: "http://127.0.0.1:\(port)/") else { throw URLError(.badURL) }
        return url
    }

    func stop() async {
        await server.stop(grace: .zero)
    }
}

/// Waits until its task is cancelled.
func forever() async throws -> [UInt8] {
    let (stream, continuation) = AsyncStream.makeStream(of: [UInt8].self)
    defer { continuation.finish() }
    for await bytes in stream { return bytes }
    throw CancellationError()
}

/// Waits until a value has not changed for half a second.
func stands(_ value: () -> Int) async -> Bool {
    await holds {
        let before = value()
        let hasChanged = await holds(within: .milliseconds(500)) { value() != before }
        return before > 0 && !hasChanged
    }
}
