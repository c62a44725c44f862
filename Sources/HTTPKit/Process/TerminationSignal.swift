internal import CLibevent

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// A request to end the process: SIGTERM, SIGINT, and also SIGHUP if the process belongs to a
/// terminal that may be closed.
///
/// When the first instance is made, the process also begins to ignore SIGUSR1, SIGUSR2, and SIGHUP
/// without a terminal (log rotation, reloads). By default these end a process, and tools send them
/// to tell a service something else.
///
/// When an instance exists, the signals no longer end the process. After the first of them, or
/// after `end`, they have their earlier effect again, so a second signal ends the process at once.
///
/// ```swift
/// let termination = await TerminationSignal()
/// _ = await termination.wait()
/// await http.stop(grace: .seconds(10))
/// ```
public final class TerminationSignal: Sendable {
    private let watch: SignalWatch

    /// Starts watching.
    public init() async {
        watch = await SignalWatch()
    }

    /// Waits until the process is asked to end, or the task is cancelled.
    /// - Returns: The signal's number; nil after a cancellation.
    public func wait() async -> Int32? {
        await withTaskCancellationHandler {
            await watch.wait()
        } onCancel: {
            Task { @EventLoop [watch] in watch.end(nil) }
        }
    }

    /// Stops watching.
    public func end() async {
        await watch.end(nil)
    }
}

@EventLoop
private final class SignalWatch {
    private var events: [OpaquePointer] = []
    private var waiting: CheckedContinuation<Int32?, Never>?
    private var hasEnded = false
    private var number: Int32?
    private static let others = [SIGHUP, SIGUSR1, SIGUSR2]

    init() {
        let isOnTerminal = isatty(STDERR_FILENO) == 1
        let ending = [SIGTERM, SIGINT] + (isOnTerminal ? [SIGHUP] : [])
        for number in Self.others where !ending.contains(number) { signal(number, SIG_IGN) }
        for number in ending {
            let event = event_new(
                EventLoop.base, number, Int16(EV_SIGNAL | EV_PERSIST),
                { number, _, argument in
                    // libevent passes the argument to this thread, on which it was set.
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

    isolated deinit {
        events.forEach { event_free($0) }
    }

    func wait() async -> Int32? {
        if hasEnded { return number }
        return await withCheckedContinuation { waiting = $0 }
    }

    func end(_ number: Int32?) {
        guard !hasEnded else { return }
        hasEnded = true
        self.number = number
        events.forEach { event_free($0) }
        events = []
        waiting?.resume(returning: number)
        waiting = nil
    }
}
