internal import CLibevent

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// A deadline that is moved far more often than it passes.
///
/// Moving it later only stores the new moment. The timer of libevent is set only when it fires
/// early or must fire sooner, so a busy connection costs no timer work at all.
@EventLoop
final class DeadlineTimer {
    private let action: @EventLoop () -> Void
    private var event: OpaquePointer?
    /// The moment when the action is due; nil for never.
    private var deadline: UInt64?
    /// The moment when libevent's timer fires; nil if it is not set.
    private var armed: UInt64?

    init(_ action: @escaping @EventLoop () -> Void) {
        self.action = action
        event = event_new(
            EventLoop.base, -1, 0,
            { _, _, argument in
                guard let argument else { return }
                EventLoop.assume {
                    Unmanaged<DeadlineTimer>.fromOpaque(argument).takeUnretainedValue().fired()
                }
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    isolated deinit {
        if let event { event_free(event) }
    }

    /// Schedules the action that many nanoseconds from now, in place of an earlier schedule.
    func set(in nanoseconds: UInt64) {
        let moment = Clock.now() + nanoseconds
        deadline = moment
        if let armed, armed <= moment { return }
        arm(moment, in: nanoseconds)
    }

    func cancel() {
        deadline = nil
    }

    private func arm(_ moment: UInt64, in nanoseconds: UInt64) {
        guard let event else { return }
        armed = moment
        var delay = timeval(
            tv_sec: Int(nanoseconds / 1_000_000_000),
            tv_usec: .init(nanoseconds % 1_000_000_000 / 1_000))
        event_add(event, &delay)
    }

    private func fired() {
        armed = nil
        guard let deadline else { return }
        let now = Clock.now()
        if now + 1_000 >= deadline {
            self.deadline = nil
            action()
        } else {
            arm(deadline, in: deadline - now)
        }
    }
}
