internal import Dispatch
internal import MartletServerCore
internal import Synchronization
internal import SystemKit

/// Has the writer take what other programs wrote, in steps between its batches.
///
/// Which of several processes does it, the counter row decides: whoever has it takes what there is,
/// and the next finds nothing.
final class ExternalIntake: Sendable {
    private let writer: Confined<DataSetNode>
    /// Does one step, on the writer's queue, and says whether there is more.
    private let step: @Sendable () -> Bool
    private let isTaking = Mutex(false)

    init(writer: Confined<DataSetNode>, step: @escaping @Sendable () -> Bool) {
        self.writer = writer
        self.step = step
    }

    /// There is something to take.
    func take() {
        let isFirst = isTaking.withLock { isTaking in
            defer { isTaking = true }
            return !isTaking
        }
        if isFirst { writer.queue.async { self.run() } }
    }

    private func run() {
        if step() {
            // Behind what has come to the writer meanwhile.
            writer.queue.async { self.run() }
        } else {
            isTaking.withLock { $0 = false }
        }
    }
}
