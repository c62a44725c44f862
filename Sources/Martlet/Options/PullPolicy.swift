/// The rule by which a started client asks the server for changes.
///
/// In addition, the client asks whenever it sends changes of its own (one exchange does both), and
/// when the app calls `sync()` or `refresh(ifOlderThan:)`.
///
/// ```swift
/// options.pull = .live(pollingEvery: .seconds(30))
/// client.setPullPolicy(.onRequest)  // while the app is in the background
/// ```
public struct PullPolicy: Hashable, Sendable {
    /// The time from the end of one exchange to the next; nil never polls. The client does not poll
    /// while the live connection is open.
    let pollInterval: Duration?
    /// Whether the client keeps a connection open over which changes arrive at once.
    let isLive: Bool

    /// A policy that asks only when the app does, and with every change of its own.
    public static let onRequest = PullPolicy(pollInterval: nil, isLive: false)

    /// Returns a policy that asks at a regular interval.
    public static func polling(every interval: Duration) -> PullPolicy {
        PullPolicy(pollInterval: interval, isLive: false)
    }

    /// Returns a policy that receives changes at once, over a connection that stays open. While
    /// there is none, it polls at the interval.
    public static func live(pollingEvery interval: Duration? = .seconds(60)) -> PullPolicy {
        PullPolicy(pollInterval: interval, isLive: true)
    }

    /// The interval in milliseconds, at least 1.
    var pollMilliseconds: Int64? { pollInterval.map { max(1, $0.wholeMilliseconds) } }
}

extension Duration {
    /// The duration in milliseconds, rounded down.
    var wholeMilliseconds: Int64 {
        components.seconds * 1_000 + components.attoseconds / 1_000_000_000_000_000
    }
}
