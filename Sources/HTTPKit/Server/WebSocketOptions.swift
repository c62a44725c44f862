public import WebSocketKit

/// How a server treats its WebSockets.
public struct WebSocketOptions: Hashable, Sendable {
    /// After this long without a byte of the client it is asked for a sign of life.
    public var pingInterval = Duration.seconds(20)
    /// A client that gives none within this time is gone.
    public var pongTimeout = Duration.seconds(20)
    /// How long a client may take nothing of what is written to it, before it is closed with
    /// `stalledCode`.
    public var stallTimeout = Duration.seconds(30)
    /// How long the closing handshake, and what is written before it, may take.
    public var closeDeadline = Duration.seconds(5)
    /// From a message's first frame to its last.
    public var messageDeadline = Duration.seconds(120)
    /// Bytes kept for a client that reads slowly, before those who send to it wait.
    public var bufferByteCount = 64 << 10
    /// What a client is told that reads too slowly.
    public var stalledCode = WebSocketCode(rawValue: 4008)
    public var stalledReason = "You read too slowly."

    public init() {}
}
