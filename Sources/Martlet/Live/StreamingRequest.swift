internal import Foundation

/// One GET whose answer is read as it comes.
struct StreamingRequest: Sendable {
    var url: URL
    /// An address of the same server that is asked for its head first, where URLSession would go on
    /// being woken by a connection that was opened for this request (Linux, decision 0143).
    var opening: URL?
    /// Header fields; Accept-Encoding is `identity` unless it stands here.
    var headers: [String: String] = [:]
    /// Ended after this long without a byte, and at most a quarter longer.
    var silence = Duration.seconds(40)
    /// Where more bytes than this lie unread, the connection is held up until half of them are
    /// taken; on Linux, where URLSession cannot, the answer ends there with a failure.
    var bufferBytes = 4 << 20
}

/// The head of an answer, and its body as it comes.
struct StreamingAnswer: Sendable {
    let status: Int
    /// Field names in lower case.
    let headers: [String: String]
    /// The body, to be read once. Letting go of it ends the request.
    let chunks: ByteChunks
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
