/// What a soak is started with.
public struct SoakOptions: Sendable {
    /// The devices, their data, and what they talk to. What concerns a bad network is not used.
    public var demo: DemoOptions
    /// How long it is measured, after the warm-up.
    public var length = Duration.seconds(900)
    /// Saves of all devices together, each second. It must be far from what the machine can do:
    /// otherwise the times say how long the queue is. A tenth of the time has about a
    /// thousand, of which the tenth longest is the 99th percentile.
    public var saves = 12.0

    public init(_ demo: DemoOptions) {
        self.demo = demo
    }

    /// The same work before the time that counts. Each connection keeps the statements it has prepared
    /// and pages it has read, up to a bound; until all devices have opened their files anew once, and
    /// seen work on all types again, what they keep grows.
    var warmUp: Duration { min(.seconds(300), length / 2) }
}
