#if canImport(Glibc)
    import Glibc
#else
    import Darwin
#endif

/// What libFuzzer calls with each input it makes up. `scripts/fuzz` compiles it with one target,
/// which it names `Fuzzed`; it is no part of the package.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    do {
        try Fuzzed.check([UInt8](UnsafeBufferPointer(start: start, count: count)))
    } catch {
        print("\(Fuzzed.name): \(error)")
        fflush(nil)
        preconditionFailure("a promise is broken")
    }
    return 0
}
