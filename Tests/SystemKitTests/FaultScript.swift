import Synchronization
import SystemKit

/// Counts operations and fails those between two numbers.
final class FaultScript: Sendable {
    private struct State {
        var count = 0
        var failed: FileOperation?
        var renamed = false
    }

    private let state = Mutex(State())
    private let range: ClosedRange<Int>
    private let number: Int32

    init(from first: Int, through last: Int, number: Int32) {
        range = first...last
        self.number = number
    }

    var faults: FileFaults {
        FileFaults { operation in
            self.state.withLock { state in
                state.count += 1
                guard self.range.contains(state.count) else {
                    if operation == .rename { state.renamed = true }
                    return nil
                }
                state.failed = state.failed ?? operation
                return self.number
            }
        }
    }

    /// The first operation that failed.
    var failed: FileOperation? { state.withLock { $0.failed } }
    var hasFailed: Bool { failed != nil }
    /// Whether a renaming was let through.
    var renamed: Bool { state.withLock { $0.renamed } }
}
