/// Runs some work once, after a pause, on any thread.
package typealias Scheduler =
    @Sendable (_ pause: Duration, _ work: @escaping @Sendable () -> Void) -> Void
