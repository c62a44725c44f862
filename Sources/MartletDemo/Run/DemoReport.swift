/// The result of a demo.
public struct DemoReport: Hashable, Sendable {
    public var seed: UInt64 = 0
    /// The outcome of every save.
    public var account = Account()
    /// The number of exchanges, and of those that had to be repeated.
    public var exchanges = 0
    public var retries = 0
    public var lostAnswers = 0
    public var lostRequests = 0
    /// The failures of the back end in a sentence; nil if there was none.
    public var story: String?
    /// The time in which changes reached listening devices.
    public var live = LiveFigures()
    /// Whether the demo fails if too few changes arrived within a second. A small demo has too few changes for
    /// this: some cut connections decide.
    public var judgesLive = true
    /// The figures of a device that joined meanwhile.
    public var join = JoinFigures()
    /// The figures of the devices whose users see a part; nil if all see everything.
    public var views: ViewFigures?
    /// The number of bytes on disk.
    public var diskBytes = 0
    /// The duration of each stage, in order.
    public var seconds: [Duration] = []

    /// Whether every check passed.
    public var isGood: Bool {
        account.isGood
            && (!judgesLive || live.withinSecond >= LiveFigures.leastWithinSecond)
            && (join.began > 0 || !join.isSnapshotDue)
            && views?.isGood != false
    }

    /// The whole time.
    public var total: Duration { seconds.reduce(.zero, +) }
}
