/// How patient a connection is. A cache that is slower than what it saves is of no use, so these are
/// short.
public struct RedisOptions: Hashable, Sendable {
    /// For making the connection, in all.
    public var connecting: Duration
    /// For the answers to one pipeline; nil for no limit.
    public var answer: Duration?
    /// Bytes of replies that may have come in and are not read yet.
    public var longestReply: Int
    /// What the server's lists call this connection; letters, digits and hyphens.
    public var name: String

    public init(
        connecting: Duration = .seconds(2), answer: Duration? = .milliseconds(500),
        longestReply: Int = 64 << 20, name: String = "martlet"
    ) {
        self.connecting = connecting
        self.answer = answer
        self.longestReply = longestReply
        self.name = name
    }
}
