internal import CLibevent

/// The thread that runs libevent, as a global actor. All bufferevents, listeners and timers are
/// used only on this thread.
@globalActor
actor EventLoop {
    static let shared = EventLoop()

    nonisolated let executor = LoopExecutor()

    nonisolated var unownedExecutor: UnownedSerialExecutor {
        executor.asUnownedSerialExecutor()
    }

    /// libevent's base.
    @EventLoop static var base: OpaquePointer { shared.executor.base }

    /// Runs `body` as part of the actor. C callbacks use it, which libevent calls on this thread.
    ///
    /// It works like `MainActor.assumeIsolated`, which Swift does not give to other global actors.
    /// The check makes the claim true; the cast only removes the annotation.
    nonisolated static func assume<Result>(_ body: @EventLoop () -> Result) -> Result {
        shared.executor.checkIsolated()
        return withoutActuallyEscaping(body) { body in
            unsafeBitCast(body, to: (() -> Result).self)()
        }
    }
}
