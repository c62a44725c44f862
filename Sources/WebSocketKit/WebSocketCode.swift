/// Why a WebSocket was closed (RFC 6455 §7.4).
///
/// 1000 to 1015 are the protocol's own; 4000 to 4999 belong to the application.
public struct WebSocketCode: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt16

    public init(rawValue: UInt16) {
        self.rawValue = rawValue
    }

    /// The exchange is over, as both wished.
    public static let normal = WebSocketCode(rawValue: 1000)
    /// This end stops, or leaves.
    public static let goingAway = WebSocketCode(rawValue: 1001)
    /// The other end broke the protocol.
    public static let protocolError = WebSocketCode(rawValue: 1002)
    /// A message of a kind this end does not take, such as binary.
    public static let unsupportedData = WebSocketCode(rawValue: 1003)
    /// The closing frame named no code; never sent.
    public static let none = WebSocketCode(rawValue: 1005)
    /// Text that is not UTF-8.
    public static let invalidText = WebSocketCode(rawValue: 1007)
    /// The application's rules forbid it.
    public static let policy = WebSocketCode(rawValue: 1008)
    /// A message over the limit.
    public static let tooBig = WebSocketCode(rawValue: 1009)
    /// A failure that is this end's own.
    public static let internalError = WebSocketCode(rawValue: 1011)
    /// Too much to do; come back later.
    public static let tryAgainLater = WebSocketCode(rawValue: 1013)
}
