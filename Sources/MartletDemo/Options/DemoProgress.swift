/// Where a demo is.
public struct DemoProgress: Hashable, Sendable {
    /// What is being done, in the order in which it is.
    public enum Stage: String, CaseIterable, Sendable {
        case load = "loading records"
        case seed = "filling devices"
        case work = "working, on- and offline"
        case live = "live"
        case drain = "coming home"
        case audit = "checking"
    }

    public let stage: Stage
    public let done: Int
    public let total: Int
    /// A few words on how it goes.
    public let detail: String
}
