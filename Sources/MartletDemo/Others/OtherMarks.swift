/// The marks of transactions of other programs.
struct OtherMarks: Hashable, Sendable {
    /// Of transactions whose commit was confirmed: each must be in the log once.
    var confirmed: [String] = []
    /// Of transactions whose end nobody knows, because the connection was lost: at most once.
    var unknown: [String] = []
}
