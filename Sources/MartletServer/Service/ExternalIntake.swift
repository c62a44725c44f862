internal import Dispatch
internal import MartletServerCore
internal import Synchronization
internal import SystemKit

/// Makes the writer take external writes into the log, in steps between its batches.
///
/// If several processes serve the data set, the counter row decides: the process that holds it
/// takes all waiting writes, and the next one finds none.
final class ExternalIntake: Sendable {
    private let writer: Confined<DataSetNode>
    /// Does one step on the writer's queue, and returns true if there is more.
    private let step: @Sendable () -> Bool
    private let isTaking = Mutex(false)

    init(writer: Confined<DataSetNode>, step: @escaping @Sendable () -> Bool) {
        self.writer = writer
        self.step = step
    }

    /// Begins to take external writes, unless that is under way.
    func take() {
        let isFirst = isTaking.withLock { isTaking in
            defer { isTaking = true }
            return !isTaking
        }
        if isFirst { writer.queue.async { self.run() } }
    }

    private func run() {
        if step() {
            // The next step goes behind the requests that reached the writer meanwhile.
            writer.queue.async { self.run() }
        } else {
            isTaking.withLock { $0 = false }
        }
    }
}
