#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// System calls that a signal may interrupt.
enum Repeating {
    /// Repeats a call until no signal interrupts it (POSIX EINTR).
    static func call<Number: BinaryInteger>(_ body: () -> Number) -> Number {
        while true {
            let answer = body()
            if answer >= 0 || errno != EINTR { return answer }
        }
    }
}
