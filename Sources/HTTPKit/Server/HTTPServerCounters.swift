/// The counts of a server since it started.
public struct HTTPServerCounters: Hashable, Sendable {
    public var openConnections = 0
    public var acceptedConnections = 0
    /// Connections refused with 429 or 503.
    public var refusedConnections = 0
    /// Requests passed to the handler.
    public var requests = 0
    /// Requests answered without the handler, 4xx and 5xx.
    public var refusedRequests = 0
    /// Requests whose client went away before the answer.
    public var abortedRequests = 0
    public var requestsInFlight = 0
    public var bodyBytesInFlight = 0
    /// Bytes of answers that have not left for their clients.
    public var waitingBytes = 0
    /// Connections closed because more bytes waited for clients than the limit allows.
    public var cutAnswers = 0
    /// Streamed answers under way.
    public var openStreams = 0
    /// Connections that are WebSockets.
    public var openWebSockets = 0
    public var webSocketMessagesReceived = 0
    public var webSocketMessagesSent = 0
    /// WebSockets closed because the client broke the protocol or a limit of it.
    public var webSocketFaults = 0
    /// WebSockets closed because the client took no bytes for too long.
    public var webSocketsStalled = 0
    /// WebSockets cut because the client gave no sign of life.
    public var webSocketsLost = 0
    /// The end of the TLS certificate, in seconds since 1970; nil without TLS.
    public var certificateEnd: Int64?

    public init() {}
}
