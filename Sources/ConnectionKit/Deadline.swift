#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// A moment until which a blocking call may wait, on the system's clock.
public struct Deadline: Hashable, Sendable {
    private let nanoseconds: UInt64

    /// Creates the moment after a duration from now. A duration over a century counts as a century.
    public init(after duration: Duration) {
        let (seconds, attoseconds) = duration.components
        let whole = UInt64(min(max(seconds, 0), 3_153_600_000))
        let rest = UInt64(max(attoseconds, 0) / 1_000_000_000)
        nanoseconds = Self.now() + whole * 1_000_000_000 + rest
    }

    /// The remaining milliseconds, rounded up; 0 if the moment has passed.
    public var milliseconds: Int32 {
        let now = Self.now()
        guard nanoseconds > now else { return 0 }
        return Int32(clamping: (nanoseconds - now + 999_999) / 1_000_000)
    }

    public var hasPassed: Bool { milliseconds == 0 }

    private static func now() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
