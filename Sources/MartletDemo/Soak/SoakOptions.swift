/// The options of a soak.
public struct SoakOptions: Sendable {
    /// The devices, their data and their servers. The options for a bad network are not used.
    public var demo: DemoOptions
    /// The measured time, after the warm-up.
    public var length = Duration.seconds(900)
    /// The number of saves of all devices together in a second. It must be far below the machine's
    /// capacity, or else the times show the length of the queue. A tenth of the default time has
    /// about a thousand saves, so the tenth longest is the 99th percentile.
    public var saves = 12.0

    public init(_ demo: DemoOptions) {
        self.demo = demo
    }

    /// The duration of the same work before the measured time. Each connection keeps prepared
    /// statements and read pages, up to a bound. This memory grows until all devices have reopened
    /// their files once and have seen work on all types again.
    var warmUp: Duration { min(.seconds(300), length / 2) }
}
