/// The outcome of every save, by which a demo is judged at its end.
public struct Account: Hashable, Sendable {
    public var types = 0
    /// The number of records on the server at the end.
    public var records = 0
    /// The number of change sets in the server's log, which is its revision.
    public var changeSets = 0
    /// The number of saves on the devices, in this run and in earlier ones.
    public var saves = 0
    /// The number of refused change sets.
    public var conflicts = 0
    /// The number of refused change sets that still wait for a decision.
    public var kept = 0
    /// The number of saves that are neither in the log nor parked.
    public var lost = 0
    /// The number of saves that are in the log more than once, or both in the log and parked.
    public var doubled = 0
    /// The number of transactions of other programs, which wrote plain SQL meanwhile. Those that
    /// are lost or doubled count in `lost` and `doubled` as well.
    public var otherTransactions = 0
    /// The number of times that the log's revisions are not consecutive.
    public var gaps = 0
    /// The number of devices whose tables equal the server's, and the number of all devices.
    public var equalReplicas = 0
    public var replicas = 0
    /// The findings of the checks, in sentences; empty if there is no fault.
    public var findings: [String] = []

    public init() {}

    /// Whether nothing was lost or doubled, and all replicas are equal.
    public var isGood: Bool {
        lost == 0 && doubled == 0 && gaps == 0 && kept == conflicts && equalReplicas == replicas
            && replicas > 0 && findings.isEmpty
    }
}
