internal import Foundation

/// A request whose answer is read as it arrives.
struct StreamingRequest: Sendable {
    var method = "GET"
    var url: URL
    /// Header fields; Accept-Encoding is `identity` unless `inflates`.
    var headers: [String: String] = [:]
    var body: [UInt8]?
    /// Whether the server may compress the answer; it is inflated as it arrives.
    var inflates = false
    /// The request ends after this long without a byte in either direction, or at most half as long
    /// again.
    var silence = Duration.seconds(40)
    /// The same limit while the whole request has been sent and no byte of the answer has arrived,
    /// because the server is at work; nil for `silence`.
    var silenceBeforeHead: Duration?
    /// If more unread bytes than this are buffered, the connection is held up until half of them
    /// are taken.
    var bufferBytes = 4 << 20
    /// Called whenever bytes have been sent or received.
    var progress: @Sendable () -> Void = {}
}

/// The head of an answer, and its body as it comes.
struct StreamingAnswer: Sendable {
    let status: Int
    /// Field names in lower case.
    let headers: [String: String]
    /// The body, to be read once. Letting go of it ends the request.
    let chunks: ByteChunks
    /// Whether another program gave the answer, as its head shows. Nothing of its body is believed.
    var isOfStranger = false

    /// Reads the body to its end. The body of a foreign answer counts as empty.
    /// - Parameter limit: The most bytes of the body; a longer one is given up.
    /// - Throws: `TransportFailure` if the body does not end, or is longer.
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

    /// The seconds to wait, if the answer's head names them.
    var retryAfter: Int64? { headers["retry-after"].flatMap { Int64($0) } }
}

/// The bytes of an answer in the pieces they came in; for one reader.
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

        /// - Throws: `TransportFailure` when the connection was cut, went silent or was cancelled.
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
