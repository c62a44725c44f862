/// Runs something once, after a while, on any thread.
package typealias Scheduler =
    @Sendable (_ pause: Duration, _ work: @escaping @Sendable () -> Void) -> Void
