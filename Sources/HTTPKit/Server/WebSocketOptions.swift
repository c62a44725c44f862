public import WebSocketKit

/// The time limits and buffers of a server's WebSockets.
public struct WebSocketOptions: Hashable, Sendable {
    /// The time without a byte of the client after which the server sends a ping.
    public var pingInterval = Duration.seconds(20)
    /// The time after a ping within which a client must send something, or the server cuts the
    /// connection.
    public var pongTimeout = Duration.seconds(20)
    /// The time that a client may take no byte before the server closes the WebSocket with
    /// `stalledCode`.
    public var stallTimeout = Duration.seconds(30)
    /// The time that the closing handshake, and the bytes written before it, may take.
    public var closeDeadline = Duration.seconds(5)
    /// The time from a message's first frame to its last.
    public var messageDeadline = Duration.seconds(120)
    /// The bytes that the server keeps for a slow client before senders wait.
    public var bufferByteCount = 64 << 10
    /// The code that the server sends to a client that reads too slowly.
    public var stalledCode = WebSocketCode(rawValue: 4008)
    public var stalledReason = "You read too slowly."

    public init() {}
}
