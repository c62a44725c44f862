/// The reason for which a WebSocket was closed (RFC 6455 §7.4).
///
/// 1000 to 1015 belong to the protocol, and 4000 to 4999 to the application.
public struct WebSocketCode: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt16

    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// The exchange is complete.
    public static let normal = WebSocketCode(rawValue: 1000)
    /// This end stops or leaves.
    public static let goingAway = WebSocketCode(rawValue: 1001)
    /// The other end broke the protocol.
    public static let protocolError = WebSocketCode(rawValue: 1002)
    /// The message is of a kind that this end does not accept, such as binary.
    public static let unsupportedData = WebSocketCode(rawValue: 1003)
    /// The closing frame had no code. This code is never sent.
    public static let none = WebSocketCode(rawValue: 1005)
    /// The text is not UTF-8.
    public static let invalidText = WebSocketCode(rawValue: 1007)
    /// The application's rules forbid the message.
    public static let policy = WebSocketCode(rawValue: 1008)
    /// The message is over the limit.
    public static let tooBig = WebSocketCode(rawValue: 1009)
    /// This end has failed.
    public static let internalError = WebSocketCode(rawValue: 1011)
    /// This end is overloaded; the other should try again later.
    public static let tryAgainLater = WebSocketCode(rawValue: 1013)
}
