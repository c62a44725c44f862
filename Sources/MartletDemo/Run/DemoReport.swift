/// How a demo ended.
public struct DemoReport: Hashable, Sendable {
    public var seed: UInt64 = 0
    /// What became of every save.
    public var account = Account()
    /// Exchanges, and those that had to be repeated.
    public var exchanges = 0
    public var retries = 0
    public var lostAnswers = 0
    public var lostRequests = 0
    /// What happened to the back end meanwhile, in a sentence.
    public var story: String?
    /// How fast changes were seen by devices that listen.
    public var live = LiveFigures()
    /// How a device that joined in the middle came to its data.
    public var join = JoinFigures()
    /// Bytes on disk.
    public var diskBytes = 0
    /// Seconds of each stage, in order.
    public var seconds: [Duration] = []

    /// Whether every check passed.
    public var isGood: Bool {
        account.isGood && live.withinSecond >= LiveFigures.leastWithinSecond
            && (join.began > 0 || !join.isSnapshotDue)
    }

    /// The whole time.
    public var total: Duration { seconds.reduce(.zero, +) }
}
