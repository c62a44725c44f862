internal import CLibevent

/// The thread that runs libevent, as a global actor: every bufferevent, listener and timer is
/// touched there and nowhere else.
@globalActor
actor EventLoop {
    static let shared = EventLoop()

    nonisolated let executor = LoopExecutor()

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        executor.asUnownedSerialExecutor()
    }

    /// libevent's base.
    @EventLoop static var base: OpaquePointer { shared.executor.base }

    /// Runs `body` as part of the actor; for C callbacks, which libevent calls on this thread.
    ///
    /// The same idea as `MainActor.assumeIsolated`, which a global actor does not get by itself:
    /// the check makes the claim true, the cast only takes the annotation off.
    nonisolated static func assume<Result>(_ body: @EventLoop () -> Result) -> Result {
        shared.executor.checkIsolated()
        return withoutActuallyEscaping(body) { body in
            unsafeBitCast(body, to: (() -> Result).self)()
        }
    }
}
