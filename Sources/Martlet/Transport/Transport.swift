internal import MartletModel
package import MartletProtocol

/// Carries one exchange to the server and back.
///
/// Its contract: an answer of any status is an answer. A failure means that it is unknown whether
/// the server received the request. The same body may be carried again after a failure.
package protocol Transport: Sendable {
    /// Performs an exchange.
    /// - Parameter body: The request as JSON, uncompressed.
    /// - Throws: `TransportFailure` if no complete answer arrived. A cancelled exchange throws it
    ///   too, not `CancellationError`.
    func exchange(_ body: [UInt8]) async throws(TransportFailure) -> TransportAnswer

    /// Performs the same exchange, and reports whenever bytes were sent or received. A device gives
    /// up an exchange that is silent for two minutes (`DeviceNode.Options.exchangeTimeout`),
    /// however long it lasts in total. A transport that reports nothing counts as silent.
    /// - Throws: `TransportFailure`, as `exchange(_:)`.
    func exchange(
        _ body: [UInt8], progress: @escaping @Sendable () -> Void
    ) async throws(TransportFailure) -> TransportAnswer
}

extension Transport {
    /// Performs the exchange and never calls `progress`, so the device gives it up after two minutes.
    /// - Throws: `TransportFailure`, as `exchange(_:)`.
    package func exchange(
        _ body: [UInt8], progress: @escaping @Sendable () -> Void
    ) async throws(TransportFailure) -> TransportAnswer {
        try await exchange(body)
    }
}

/// The server's answer to an exchange.
package struct TransportAnswer: Sendable {
    /// The HTTP status.
    package var status: Int
    /// The body, decompressed.
    package var body: [UInt8]
    /// The seconds from a Retry-After header; nil if there is none.
    package var retryAfter: Int64?

    /// Creates an answer.
    package init(status: Int, body: [UInt8], retryAfter: Int64? = nil) {
        self.status = status
        self.body = body
        self.retryAfter = retryAfter
    }
}

/// The reason why no complete answer arrived.
package struct TransportFailure: Error, Hashable, Sendable {
    /// A sentence for people.
    package let message: String
    /// The HTTP status; nil if the server did not answer with a refusal.
    package let status: Int?
    /// The server's problem; nil if it did not send one in the format of the wire.
    package let problem: Problem?
    /// The seconds to wait, if the server asks for it.
    package let retryAfter: Int64?
    /// Whether a live connection ended after part of a batch: it was cut there, or the batch is
    /// larger than the limit.
    package var isInBatch = false
    /// Whether the other end failed to prove by its certificate that it is the server.
    package let isUntrusted: Bool

    package init(
        message: String, status: Int? = nil, problem: Problem? = nil, retryAfter: Int64? = nil,
        isUntrusted: Bool = false
    ) {
        self.isUntrusted = isUntrusted
        self.message = message
        self.status = status
        self.problem = problem
        self.retryAfter = retryAfter
    }

    /// Returns the same failure for a live connection.
    func ended(inBatch isInBatch: Bool) -> TransportFailure {
        var failure = self
        failure.isInBatch = isInBatch
        return failure
    }
}
