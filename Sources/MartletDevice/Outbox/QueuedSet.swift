/// One row of the queue.
struct QueuedSet {
    let sequence: Int64
    let identifier: String
    /// Its bytes are frozen, and the server may have them.
    let isSent: Bool
    /// Its edits show in the tables.
    let isApplied: Bool
}
