internal import Synchronization

/// Checks periodically whether another process has written, while this is wanted. SQLite does not
/// notify other processes; a check costs a few microseconds.
package final class ExternalWritesWatch: Sendable {
    private let period: Duration
    private let sleep: @Sendable (Duration) async throws -> Void
    private let look: @Sendable () -> Void
    private let task = Mutex<Task<Void, Never>?>(nil)

    package init(
        period: Duration, sleep: @escaping @Sendable (Duration) async throws -> Void,
        look: @escaping @Sendable () -> Void
    ) {
        self.period = period
        self.sleep = sleep
        self.look = look
    }

    /// Starts or stops the checks.
    package func setWanted(_ isWanted: Bool) {
        task.withLock { task in
            guard isWanted else {
                task?.cancel()
                task = nil
                return
            }
            guard task == nil else { return }
            let (period, sleep, look) = (period, sleep, look)
            // A write from before is no news to new observers, or this first check reports it.
            look()
            task = Task {
                while !Task.isCancelled {
                    do { try await sleep(period) } catch { return }
                    look()
                }
            }
        }
    }
}
