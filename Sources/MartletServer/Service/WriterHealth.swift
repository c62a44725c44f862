internal import MartletServerCore
internal import Synchronization

/// Tells whether a data set's writer can write, by the time for which all its batches have failed.
final class WriterHealth: Sendable {
    private struct Trouble {
        let since: ContinuousClock.Instant
        var last: ContinuousClock.Instant
        var kind: StorageFault.Kind
    }

    /// Consecutive failures that last for less are no hindrance.
    private static let patience = Duration.seconds(3)
    /// An older failure says nothing about the writer's state, because nobody has tried since.
    private static let memory = Duration.seconds(30)

    private let now: @Sendable () -> ContinuousClock.Instant
    private let trouble = Mutex<Trouble?>(nil)

    init(now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        self.now = now
    }

    /// Notes that a batch was carried out.
    func worked() {
        trouble.withLock { $0 = nil }
    }

    /// Notes that a batch failed because of the storage.
    func failed(_ kind: StorageFault.Kind) {
        let now = self.now()
        trouble.withLock { $0 = Trouble(since: $0?.since ?? now, last: now, kind: kind) }
    }

    /// The time for which all batches have failed; zero while the writer works.
    var blocked: Duration {
        trouble.withLock { $0.map { now() - $0.since } ?? .zero }
    }

    /// Whether the data set counts as not served. On a full disk it counts as served, because
    /// everything can still be read.
    var isHindered: Bool {
        trouble.withLock { trouble in
            guard let trouble, trouble.kind != .full else { return false }
            let now = self.now()
            // A file that was replaced is no moment's trouble.
            return (trouble.kind == .moved || now - trouble.since >= Self.patience)
                && now - trouble.last < Self.memory
        }
    }
}
