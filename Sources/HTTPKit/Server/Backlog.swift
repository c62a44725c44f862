/// Counts the bytes that a client takes after they had to wait, and measures how fast it takes
/// them.
struct Backlog {
    /// The bytes that had to wait and have left since. The number grows as long as the client
    /// reads.
    private(set) var takenByteCount = 0
    /// The moment when the present bytes began to wait, and the bytes that the client had taken by
    /// then; nil if none wait.
    private var waiting: (since: UInt64, taken: Int)?

    /// Counts bytes that have left for the client.
    /// - Parameters:
    ///   - hasMore: Whether other bytes wait.
    ///   - now: The nanoseconds of the clock.
    mutating func note(taken: Int, hasMore: Bool, _ now: UInt64) {
        takenByteCount += taken
        if !hasMore {
            waiting = nil
        } else if waiting == nil {
            waiting = (now, takenByteCount)
        }
    }

    /// Returns the bytes that the client has taken each second since some began to wait, and the
    /// nanoseconds that they have waited.
    func pace(_ now: UInt64) -> (bytesPerSecond: Double, waited: UInt64) {
        guard let waiting else { return (.infinity, 0) }
        let waited = now - waiting.since
        // No client counts as fast within its first second.
        let seconds = 1 + Double(waited) / 1_000_000_000
        return (Double(takenByteCount - waiting.taken) / seconds, waited)
    }
}
