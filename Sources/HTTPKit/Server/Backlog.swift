/// Counts the bytes that a client takes after they had to wait, and tells how fast it takes them.
struct Backlog {
    /// Bytes that had to wait and have left since: it grows as long as the client reads.
    private(set) var takenByteCount = 0
    /// When the bytes that wait began to, and what the client had taken by then; nil if none wait.
    private var waiting: (since: UInt64, taken: Int)?

    /// Counts bytes that have left.
    /// - Parameters:
    ///   - hasMore: Whether others wait.
    ///   - now: Nanoseconds of the clock.
    mutating func note(taken: Int, hasMore: Bool, _ now: UInt64) {
        takenByteCount += taken
        if !hasMore {
            waiting = nil
        } else if waiting == nil {
            waiting = (now, takenByteCount)
        }
    }

    /// The bytes that the client has taken each second since some began to wait, and for how many
    /// nanoseconds they have waited.
    func pace(_ now: UInt64) -> (bytesPerSecond: Double, waited: UInt64) {
        guard let waiting else { return (.infinity, 0) }
        let waited = now - waiting.since
        // Within its first second no client is fast.
        let seconds = 1 + Double(waited) / 1_000_000_000
        return (Double(takenByteCount - waiting.taken) / seconds, waited)
    }
}
