/// How a demo ended.
public struct DemoReport: Hashable, Sendable {
    public var seed: UInt64 = 0
    public var types = 0
    /// Records on the server at the end.
    public var records = 0
    /// Change sets in the server's log: its revision.
    public var changeSets = 0
    /// Saves of the devices' people, this run's and earlier ones'.
    public var saves = 0
    /// Change sets that were refused.
    public var conflicts = 0
    /// Refused change sets that are still there for someone to decide.
    public var kept = 0
    /// Exchanges, and those that had to be repeated.
    public var exchanges = 0
    public var retries = 0
    public var lostAnswers = 0
    public var lostRequests = 0
    /// Saves that are neither in the log nor parked.
    public var lost = 0
    /// Saves that are in the log more than once, or both there and parked.
    public var doubled = 0
    /// Transactions of other programs, which wrote plain SQL meanwhile; they count in `lost` and
    /// `doubled` as well.
    public var otherTransactions = 0
    /// What happened to the back end meanwhile, in a sentence.
    public var story: String?
    /// Places where the log's revisions do not follow one another.
    public var gaps = 0
    /// Devices whose tables equal the server's, and devices in all.
    public var equalReplicas = 0
    public var replicas = 0
    /// How fast changes were seen by devices that listen.
    public var live = LiveFigures()
    /// How a device that joined in the middle came to its data.
    public var join = JoinFigures()
    /// Bytes on disk.
    public var diskBytes = 0
    /// Seconds of each stage, in order.
    public var seconds: [Duration] = []
    /// What the checks found, in sentences; empty when all is well.
    public var findings: [String] = []

    /// Whether every check passed.
    public var isGood: Bool {
        lost == 0 && doubled == 0 && gaps == 0 && kept == conflicts && equalReplicas == replicas
            && replicas > 0 && findings.isEmpty
            && live.withinSecond >= LiveFigures.leastWithinSecond
            && (join.began > 0 || !join.isSnapshotDue)
    }

    /// The whole time.
    public var total: Duration { seconds.reduce(.zero, +) }
}
