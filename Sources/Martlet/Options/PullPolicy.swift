/// When a client that was started asks for what others changed.
///
/// Beside this it always asks: before it sends changes of its own (one exchange does both), and
/// when the app calls `sync()` or `refresh(ifOlderThan:)`.
public struct PullPolicy: Hashable, Sendable {
    /// How long after an exchange the next is made; nil: none by itself. Nothing is polled while
    /// the live connection is open.
    public var pollInterval: Duration?
    /// Whether a connection is kept open over which changes come at once.
    public var isLive: Bool

    public init(pollInterval: Duration?, isLive: Bool) {
        self.pollInterval = pollInterval
        self.isLive = isLive
    }

    /// Only when the app asks, and with every change of its own.
    public static let onRequest = PullPolicy(pollInterval: nil, isLive: false)

    /// Every so often.
    public static func polling(every interval: Duration) -> PullPolicy {
        PullPolicy(pollInterval: interval, isLive: false)
    }

    /// At once, over a connection that is kept open; every so often while there is none.
    public static func live(pollingEvery interval: Duration? = .seconds(60)) -> PullPolicy {
        PullPolicy(pollInterval: interval, isLive: true)
    }

    /// The interval as the machine counts it.
    var pollMilliseconds: Int64? { pollInterval.map { max(1, $0.wholeMilliseconds) } }
}

extension Duration {
    /// Rounded down.
    var wholeMilliseconds: Int64 {
        components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000
    }
}
