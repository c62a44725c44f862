/// The time limits of a connection. They are short, because a cache is useless if it is slower than
/// the work that it saves.
public struct RedisOptions: Hashable, Sendable {
    /// The total time for connecting.
    public var connecting: Duration
    /// The time for the answers to one pipeline; nil for no limit.
    public var answer: Duration?
    /// The maximum number of bytes of replies that have arrived and are not read yet.
    public var longestReply: Int
    /// The name of this connection in the server's lists: letters, digits and hyphens.
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
