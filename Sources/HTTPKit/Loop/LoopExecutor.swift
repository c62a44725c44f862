internal import CLibevent
internal import Dispatch
internal import Synchronization

#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// Runs jobs on the thread that runs libevent's loop. The thread lives as long as the process.
final class LoopExecutor: SerialExecutor {
    /// The base, used only on the loop's thread, except by `event_active`, which locks (evthread).
    nonisolated(unsafe) let base: OpaquePointer
    /// The loop's thread. It writes this before `init` returns; afterwards this is read-only.
    nonisolated(unsafe) private var thread: pthread_t?
    /// The event that wakes the loop. It is written once, in `init`.
    nonisolated(unsafe) private var wake: OpaquePointer?
    private let jobs = Mutex<[UnownedJob]>([])

    init() {
        // This precedes the base, which sets up its locks by it.
        precondition(evthread_use_pthreads() == 0, "libevent offers no threads")
        guard let base = event_base_new() else {
            preconditionFailure("libevent could not make an event base")
        }
        self.base = base
        signal(SIGPIPE, SIG_IGN)
        _ = martlet_raise_descriptor_limit()
        martlet_return_large_pieces()
        wake = event_new(
            base, -1, Int16(EV_PERSIST),
            { _, _, argument in
                guard let argument else { return }
                Unmanaged<LoopExecutor>.fromOpaque(argument).takeUnretainedValue().runJobs()
            }, Unmanaged.passUnretained(self).toOpaque())
        precondition(wake != nil, "libevent has no memory for an event")
        startThread()
    }

    private func startThread() {
        let started = DispatchSemaphore(value: 0)
        let start = ThreadStart(executor: self, started: started)
        #if canImport(Glibc)
            var made = pthread_t()
        #else
            var made: pthread_t?
        #endif
        let code = pthread_create(
            &made, nil,
            { argument in
                ThreadStart.run(argument)
                return nil
            }, Unmanaged.passRetained(start).toOpaque())
        precondition(code == 0, "no thread for the event loop")
        started.wait()
    }

    fileprivate func setThread() {
        thread = pthread_self()
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isFirst = jobs.withLock { jobs in
            jobs.append(job)
            return jobs.count == 1
        }
        if isFirst, let wake { event_active(wake, 0, 0) }
    }

    private func runJobs() {
        let ready = jobs.withLock { jobs in
            let ready = jobs
            jobs.removeAll(keepingCapacity: true)
            return ready
        }
        for job in ready {
            job.runSynchronously(on: asUnownedSerialExecutor())
        }
    }

    private var isCurrentThread: Bool {
        thread.map { pthread_equal($0, pthread_self()) != 0 } ?? false
    }

    func checkIsolated() {
        precondition(isCurrentThread, "called off the event loop's thread")
    }

    func isIsolatingCurrentContext() -> Bool? {
        isCurrentThread
    }
}

/// The values that the new thread needs before it runs.
private final class ThreadStart {
    let executor: LoopExecutor
    let started: DispatchSemaphore

    init(executor: LoopExecutor, started: DispatchSemaphore) {
        self.executor = executor
        self.started = started
    }

    /// The thread's body.
    static func run(_ argument: UnsafeMutableRawPointer?) {
        guard let argument else { return }
        let start = Unmanaged<ThreadStart>.fromOpaque(argument).takeRetainedValue()
        start.executor.setThread()
        start.started.signal()
        event_base_loop(start.executor.base, EVLOOP_NO_EXIT_ON_EMPTY)
    }
}
