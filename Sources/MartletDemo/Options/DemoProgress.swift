/// The progress of a demo.
public struct DemoProgress: Hashable, Sendable {
    /// The stages, in their order.
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
    /// A few words on the state of the stage.
    public let detail: String
}
