/// Runs something once, after a while, on any thread.
package typealias Later =
    @Sendable (_ pause: Duration, _ work: @escaping @Sendable () -> Void) -> Void
