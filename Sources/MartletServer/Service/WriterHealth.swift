internal import MartletServerCore
internal import Synchronization

/// Tells whether a data set's writer can write, by the time for which all its batches have failed.
final class WriterHealth: Sendable {
    private struct Trouble {
        let since: ContinuousClock.Instant
        var last: ContinuousClock.Instant
        var kind: StorageFault.Kind
    }

    /// The time when the current commit began; nil if there is none.
    private let commit = Mutex<ContinuousClock.Instant?>(nil)

    /// Consecutive failures that last for less time do not make the data set unready.
    private static let patience = Duration.seconds(3)
    /// An older failure says nothing about the writer's state, because nothing was written since.
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

    /// Notes that a commit begins or ends.
    func commits(_ isUnderWay: Bool) {
        commit.withLock { $0 = isUnderWay ? now() : nil }
    }

    /// The time for which the writer has waited for its commit, such as for a synchronous standby;
    /// nil if it is no longer than usual.
    var commitWait: Duration? {
        guard let begin = commit.withLock({ $0 }) else { return nil }
        let wait = now() - begin
        return wait >= Self.patience ? wait : nil
    }

    /// The time for which all batches have failed, or the writer has waited for its commit; zero while
    /// it works.
    var blocked: Duration {
        max(trouble.withLock { $0.map { now() - $0.since } } ?? .zero, commitWait ?? .zero)
    }

    /// True if the data set's file is no longer at its path, where a reader may find another one.
    var isMoved: Bool { trouble.withLock { $0?.kind == .moved } }

    /// True if the data set counts as not served. On a full disk it counts as served, because
    /// everything can still be read.
    var isHindered: Bool {
        trouble.withLock { trouble in
            guard let trouble, trouble.kind != .full else { return false }
            // This holds until a look finds the file in its place.
            if trouble.kind == .moved { return true }
            let now = self.now()
            return now - trouble.since >= Self.patience && now - trouble.last < Self.memory
        }
    }

    /// The reason why the data set counts as not served; nil if it can be written to, as far as is
    /// known.
    var unreadyReason: String? {
        if let wait = commitWait { return Self.words(forWait: wait) }
        return isHindered
            ? "nothing could be written for \(blocked.components.seconds) s" : nil
    }

    /// Returns the words for a commit that takes long.
    static func words(forWait wait: Duration) -> String {
        "the writer waits for its commit for \(wait.components.seconds) s already"
    }
}
