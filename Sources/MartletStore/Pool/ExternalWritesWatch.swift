internal import Synchronization

/// Looks from time to time whether another process has written, for as long as anyone wants to
/// know. SQLite tells nobody; asking costs a few microseconds.
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

    package func setWanted(_ isWanted: Bool) {
        task.withLock { task in
            guard isWanted else {
                task?.cancel()
                task = nil
                return
            }
            guard task == nil else { return }
            let (period, sleep, look) = (period, sleep, look)
            // What was written while nobody observed is no news, or soon told.
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
