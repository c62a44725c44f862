/// What became of every save: what a team is judged by in the end.
public struct Account: Hashable, Sendable {
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
    /// Saves that are neither in the log nor parked.
    public var lost = 0
    /// Saves that are in the log more than once, or both there and parked.
    public var doubled = 0
    /// Transactions of other programs, which wrote plain SQL meanwhile; they count in `lost` and
    /// `doubled` as well.
    public var otherTransactions = 0
    /// Places where the log's revisions do not follow one another.
    public var gaps = 0
    /// Devices whose tables equal the server's, and devices in all.
    public var equalReplicas = 0
    public var replicas = 0
    /// What the checks found, in sentences; empty when all is well.
    public var findings: [String] = []

    public init() {}

    /// Whether nothing was lost or doubled, and all replicas are equal.
    public var isGood: Bool {
        lost == 0 && doubled == 0 && gaps == 0 && kept == conflicts && equalReplicas == replicas
            && replicas > 0 && findings.isEmpty
    }
}
