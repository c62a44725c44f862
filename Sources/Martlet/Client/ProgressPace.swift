internal import Synchronization

/// Reports that bytes have moved, at most once in a period.
final class ProgressPace: Sendable {
    private let period: Int64
    private let now: @Sendable () -> Int64
    private let tell: @Sendable () -> Void
    private let last: Mutex<Int64>

    /// Creates a pace whose first period begins now.
    /// - Parameters:
    ///   - period: The period in milliseconds.
    ///   - now: Returns the time in milliseconds since 1970.
    init(
        every period: Int64, now: @escaping @Sendable () -> Int64,
        tell: @escaping @Sendable () -> Void
    ) {
        self.period = period
        self.now = now
        self.tell = tell
        last = Mutex(now())
    }

    /// Notes that bytes have moved.
    @Sendable func moved() {
        let now = now()
        let isTime = last.withLock { last in
            // If the clock was set back, the time since the last report is unknown, so it reports.
            guard now < last || now - last >= period else { return false }
            last = now
            return true
        }
        if isTime { tell() }
    }
}
