#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// System calls that a signal may cut short.
enum Repeating {
    /// Calls again for as long as a signal interrupts (POSIX EINTR).
    static func call<Number: BinaryInteger>(_ body: () -> Number) -> Number {
        while true {
            let answer = body()
            if answer >= 0 || errno != EINTR { return answer }
        }
    }
}
