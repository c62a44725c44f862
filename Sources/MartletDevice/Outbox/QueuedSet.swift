/// One row of the queue.
struct QueuedSet {
    let sequence: Int64
    let identifier: String
    /// Whether its bytes are frozen, so that the server may have them.
    let isSent: Bool
    /// Whether the tables show its edits.
    let isApplied: Bool
}
