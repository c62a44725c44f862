internal import Synchronization

/// The tables of a data set that another program keeps locked whole. The server puts off changes
/// that need them, and sends their rows to no new device.
final class LockedTables: Sendable {
    /// A change of the locks that the log reports to the operator.
    enum News: Equatable {
        case locked([String])
        case free
    }

    private struct Locks {
        let since: ContinuousClock.Instant
        var types: [String]
        var isTold = false
    }

    /// Shorter locks are normal and are not reported.
    private static let patience = Duration.seconds(3)

    private let now: @Sendable () -> ContinuousClock.Instant
    private let locks = Mutex<Locks?>(nil)

    init(now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) {
        self.now = now
    }

    /// Notes the tables that a look found locked.
    ///
    /// - Returns: A change to report: once, as soon as a lock has lasted.
    func found(_ types: [String]) -> News? {
        locks.withLock { locks in
            guard !types.isEmpty else {
                defer { locks = nil }
                return locks?.isTold == true ? .free : nil
            }
            var held = locks ?? Locks(since: now(), types: types)
            held.types = types
            defer { locks = held }
            guard !held.isTold, now() - held.since >= Self.patience else { return nil }
            held.isTold = true
            return .locked(types)
        }
    }

    /// The number of types that have been locked for long enough to be reported.
    var count: Int {
        locks.withLock { $0.map { $0.isTold ? $0.types.count : 0 } ?? 0 }
    }
}
