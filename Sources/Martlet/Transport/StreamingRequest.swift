internal import Foundation

/// A request whose answer is read as it arrives.
struct StreamingRequest: Sendable {
    var method = "GET"
    var url: URL
    /// The header fields. Accept-Encoding is `identity` unless `inflates`.
    var headers: [String: String] = [:]
    var body: [UInt8]?
    /// Whether the server may compress the answer, which is then inflated as it arrives.
    var inflates = false
    /// The time without a byte in either direction after which the request ends; it may take up to
    /// half as long again.
    var silence = Duration.seconds(40)
    /// The same limit while the whole request has been sent and no byte of the answer has arrived,
    /// because the server is at work. If nil, `silence` applies.
    var silenceBeforeHead: Duration?
    /// The limit of unread bytes. If more are buffered, the connection is suspended until half of
    /// them are taken.
    var bufferBytes = 4 << 20
    /// Called whenever bytes have been sent or received.
    var progress: @Sendable () -> Void = {}
}

/// The head of an answer, and its body as it arrives.
struct StreamingAnswer: Sendable {
    let status: Int
    /// The header fields; their names are in lower case.
    let headers: [String: String]
    /// The body, which can be read once. The request ends when the last reference to it is gone.
    let chunks: ByteChunks
    /// Whether another program gave the answer, as its head shows. Its body is ignored.
    var isOfStranger = false

    /// Reads the body to its end. The body counts as empty if another program gave the answer.
    /// - Parameter limit: The maximum bytes of the body.
    /// - Throws: `TransportFailure` if the body does not end, or is longer than `limit`.
    func whole(limit: Int) async throws(TransportFailure) -> [UInt8] {
        var body: [UInt8] = []
        guard !isOfStranger else { return body }
        for try await chunk in chunks {
            guard body.count + chunk.count <= limit else {
                throw TransportFailure(
                    message: "The server's answer is longer than \(limit) bytes, the most taken.")
            }
            body += chunk
        }
        return body
    }

    /// The seconds to wait before a retry; nil if the answer's head does not say.
    var retryAfter: Int64? { headers["retry-after"].flatMap { Int64($0) } }
}

/// The bytes of an answer, in the pieces in which they arrived; for one reader.
struct ByteChunks: AsyncSequence, Sendable {
    let incoming: IncomingBytes
    private let hold: Hold

    /// Ends the request when nobody can read its answer any more.
    private final class Hold: Sendable {
        let incoming: IncomingBytes

        init(_ incoming: IncomingBytes) {
            self.incoming = incoming
        }

        deinit {
            incoming.abandon()
        }
    }

    init(_ incoming: IncomingBytes) {
        self.incoming = incoming
        hold = Hold(incoming)
    }

    func makeAsyncIterator() -> Iterator {
        Iterator(chunks: self)
    }

    struct Iterator: AsyncIteratorProtocol {
        let chunks: ByteChunks

        /// Waits for the next bytes; returns nil at the end.
        /// - Throws: `TransportFailure` if the connection was cut, went silent or was cancelled.
        mutating func next() async throws(TransportFailure) -> [UInt8]? {
            try await next(isolation: nil)
        }

        mutating func next(
            isolation actor: isolated (any Actor)?
        ) async throws(TransportFailure) -> [UInt8]? {
            try await chunks.incoming.next()
        }
    }
}
