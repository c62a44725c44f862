import Synchronization
import Waiting

/// Counts what happened anywhere, and lets one wait until it has happened so often.
final class Milestones: Sendable {
    private let state = Mutex(0)

    var count: Int { state.withLock(\.self) }

    func add(_ number: Int = 1) {
        state.withLock { $0 += number }
    }

    /// Waits until there are so many.
    func wait(for target: Int) async throws {
        try await waitUntil("there are \(target)") { count >= target }
    }
}
