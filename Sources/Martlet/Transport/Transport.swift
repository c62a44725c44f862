internal import MartletModel
public import MartletProtocol

/// Carries one exchange to the server and back.
///
/// A contract: an answer of any status is an answer; a failure means that it is unknown whether
/// the server got the request. The same body may be carried again after a failure.
public protocol Transport: Sendable {
    /// - Parameter body: The request as JSON, uncompressed.
    /// - Throws: `TransportFailure` when no whole answer came; `CancellationError` is not thrown,
    ///   a cancelled exchange fails.
    func exchange(_ body: [UInt8]) async throws(TransportFailure) -> TransportAnswer

    /// Performs the same exchange and reports every byte sent or received. A device gives up an
    /// exchange that is silent for two minutes (`DeviceNode.Options.exchangeTimeout`), however long
    /// it lasts. A transport that reports nothing counts as silent.
    func exchange(
        _ body: [UInt8], progress: @escaping @Sendable () -> Void
    ) async throws(TransportFailure) -> TransportAnswer
}

extension Transport {
    /// Performs the exchange without reporting its bytes.
    public func exchange(
        _ body: [UInt8], progress: @escaping @Sendable () -> Void
    ) async throws(TransportFailure) -> TransportAnswer {
        try await exchange(body)
    }
}

/// What the server answered.
public struct TransportAnswer: Sendable {
    public var status: Int
    /// Inflated.
    public var body: [UInt8]
    /// Seconds from a Retry-After header.
    public var retryAfter: Int64?

    public init(status: Int, body: [UInt8], retryAfter: Int64? = nil) {
        self.status = status
        self.body = body
        self.retryAfter = retryAfter
    }
}

/// Why no whole answer came.
public struct TransportFailure: Error, Hashable, Sendable {
    public let message: String
    /// HTTP status, where the server answered and refused.
    public let status: Int?
    /// What the server said, where it said it in the form of the wire.
    public let problem: Problem?
    /// Seconds to wait, where the server asks for it.
    public let retryAfter: Int64?
    /// Whether a live connection ended when part of a batch had come: it was cut there, or the
    /// batch is larger than what is taken in.
    public var isInBatch = false
    /// Whether the other end failed to prove by its certificate that it is the server.
    public let isUntrusted: Bool

    public init(
        message: String, status: Int? = nil, problem: Problem? = nil, retryAfter: Int64? = nil,
        isUntrusted: Bool = false
    ) {
        self.isUntrusted = isUntrusted
        self.message = message
        self.status = status
        self.problem = problem
        self.retryAfter = retryAfter
    }

    /// The same, of a live connection.
    func ended(inBatch isInBatch: Bool) -> TransportFailure {
        var failure = self
        failure.isInBatch = isInBatch
        return failure
    }
}
