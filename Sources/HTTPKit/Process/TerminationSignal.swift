internal import CLibevent

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// The wish, from outside, that the process ends: SIGTERM or SIGINT.
public enum TerminationSignal {
    /// Returns when the process is asked to end, or the task is cancelled.
    ///
    /// Afterwards the signals mean what they meant before, so that a second one ends the process
    /// at once.
    /// - Returns: The signal's number; nil after a cancellation.
    public static func wait() async -> Int32? {
        let watch = await SignalWatch()
        return await withTaskCancellationHandler {
            await watch.wait()
        } onCancel: {
            Task { @EventLoop in watch.end(nil) }
        }
    }
}

@EventLoop
private final class SignalWatch {
    private var events: [OpaquePointer] = []
    private var waiting: CheckedContinuation<Int32?, Never>?
    private var hasEnded = false

    init() {
        for number in [SIGTERM, SIGINT] {
            let event = event_new(
                EventLoop.base, number, Int16(EV_SIGNAL | EV_PERSIST),
                { number, _, argument in
                    // libevent hands it to this thread, where it was given.
                    nonisolated(unsafe) let argument = argument
                    EventLoop.assume {
                        guard let argument else { return }
                        Unmanaged<SignalWatch>.fromOpaque(argument).takeUnretainedValue()
                            .end(number)
                    }
                }, Unmanaged.passUnretained(self).toOpaque())
            guard let event else { continue }
            event_add(event, nil)
            events.append(event)
        }
    }

    func wait() async -> Int32? {
        if hasEnded { return nil }
        return await withCheckedContinuation { waiting = $0 }
    }

    func end(_ number: Int32?) {
        guard !hasEnded else { return }
        hasEnded = true
        events.forEach { event_free($0) }
        events = []
        waiting?.resume(returning: number)
        waiting = nil
    }
}
