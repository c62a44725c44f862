/// The marks of transactions of other programs.
struct OtherMarks: Hashable, Sendable {
    /// The marks of confirmed transactions. Each must be in the log once.
    var confirmed: [String] = []
    /// The marks of transactions with an unknown outcome, because the connection was lost. Each may
    /// be in the log at most once.
    var unknown: [String] = []
}
