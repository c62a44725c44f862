internal import HTTPKit
internal import MartletRedis
internal import MartletServerCore
internal import Synchronization

/// The server's counters, for `GET /metrics`.
final class Metrics: Sendable {
    struct Request: Hashable {
        var endpoint: String
        var status: Int
        var kind: String
    }

    struct Counts {
        var requests: [Request: Int] = [:]
        var accepted = 0
        var refused: [String: Int] = [:]
        /// The number of batches for each upper bound in `batchBounds`; the last is for larger
        /// batches.
        var batches = [Int](repeating: 0, count: Metrics.batchBounds.count + 1)
        var batchedSets = 0
        var answerBytes = 0
        var cacheHits = 0
        var cacheMisses = 0
        var differences = 0
        var entriesEmptied = 0
        var rowsLeftOut = 0
        var externalTaken = 0
        /// The number of faults, by kind.
        var storageFaults: [String: Int] = [:]
        var opened = 0
        var closed = 0
        var takenUp = 0
        var notTakenUp = 0
        var snapshotsMade = 0
        var snapshotsFailed = 0
        var snapshotBytes = 0
    }

    static let batchBounds = [1, 2, 4, 8, 16, 32, 64, 128]

    private let counts = Mutex(Counts())

    /// The counts until now.
    var current: Counts { counts.withLock { $0 } }

    /// Counts an answered request.
    ///
    /// - Parameter kind: A problem's kind; “ok” if there was none.
    func countRequest(endpoint: String, status: Int, kind: String, answerBytes: Int) {
        counts.withLock {
            $0.requests[Request(endpoint: endpoint, status: status, kind: kind), default: 0] += 1
            $0.answerBytes += answerBytes
        }
    }

    func countVerdicts(accepted: Int, refused: [String]) {
        guard accepted > 0 || !refused.isEmpty else { return }
        counts.withLock { counts in
            counts.accepted += accepted
            for reason in refused { counts.refused[reason, default: 0] += 1 }
        }
    }

    func countBatch(sets: Int) {
        counts.withLock { counts in
            let index = Self.batchBounds.firstIndex { sets <= $0 } ?? Self.batchBounds.count
            counts.batches[index] += 1
            counts.batchedSets += sets
        }
    }

    /// Counts a pull.
    ///
    /// - Parameter isHit: True if the pull was answered from memory.
    func countPull(isHit: Bool) {
        counts.withLock { counts in
            if isHit { counts.cacheHits += 1 } else { counts.cacheMisses += 1 }
        }
    }

    /// Counts an answer or a batch that has rows in place of entries.
    func countDifference() {
        counts.withLock { $0.differences += 1 }
    }

    func countCompaction(emptied: Int) {
        counts.withLock { $0.entriesEmptied += emptied }
    }

    /// Counts a row that was left out because no device can receive it.
    func countRowLeftOut() {
        counts.withLock { $0.rowsLeftOut += 1 }
    }

    /// Counts change sets that were made from external writes.
    func countExternal(taken: Int) {
        counts.withLock { $0.externalTaken += taken }
    }

    /// Counts a failure of a storage.
    func countStorageFault(_ kind: String) {
        counts.withLock { $0.storageFaults[kind, default: 0] += 1 }
    }

    /// Counts a data set that was opened or closed.
    func countDataSet(isOpened: Bool) {
        counts.withLock { counts in
            if isOpened { counts.opened += 1 } else { counts.closed += 1 }
        }
    }

    /// Counts a data set that was reopened because its tables had changed.
    ///
    /// - Parameter isDone: True if it could be opened.
    func countTakenUp(isDone: Bool) {
        counts.withLock { counts in
            if isDone { counts.takenUp += 1 } else { counts.notTakenUp += 1 }
        }
    }

    /// Counts a snapshot.
    ///
    /// - Parameter isMade: True if it was made; false if making it failed.
    func countSnapshot(isMade: Bool) {
        counts.withLock { counts in
            if isMade { counts.snapshotsMade += 1 } else { counts.snapshotsFailed += 1 }
        }
    }

    /// Counts bytes of snapshots' files as they are sent.
    func countSnapshotBytes(_ count: Int) {
        counts.withLock { $0.snapshotBytes += count }
    }
}
