package import MartletModel
internal import MartletProtocol

/// The result of one step of compaction.
package struct CompactionStep: Hashable, Sendable {
    /// The number of entries that lost their bodies.
    package var emptied: Int
    /// The new floor. A device that is behind it gets a difference.
    package var floor: Revision
    /// True if there is nothing left to do for now.
    package var isDone: Bool
}

extension DataSetNode {
    /// The most entries of one step, for which a write may have to wait.
    package static let entriesPerStep = 256
    /// The bytes of bodies after which a step ends.
    private static let bytesPerStep = 4 << 20

    /// Returns the number of entries that could lose their bodies if the newest `newest` are kept.
    package func compactable(keeping newest: Int64) -> Int64 {
        max(0, storage.head.revision - max(0, newest) - storage.floor)
    }

    /// Empties entries older than the newest ones, a bounded number in one transaction of its own.
    ///
    /// An entry loses its body and its records' temporary ids. It keeps its revision, identifier,
    /// number, content hash and chained hash, so the server can repeat verdicts and check lineage
    /// for ever. Entries that their authors have not acknowledged keep everything. Views that nobody was
    /// given since the floor go as well. On a fault nothing has changed, and `takeFault` returns the fault.
    ///
    /// - Parameters:
    ///   - newest: The number of entries that stay whole.
    ///   - entries: The most entries that the step passes.
    /// - Complexity: O(*n*) in the entries of the step.
    package func compact(
        keeping newest: Int64, entries: Int = DataSetNode.entriesPerStep
    ) -> CompactionStep {
        do throws(StorageFault) {
            if needsRecovery { try recover() }
            var emptied = 0
            if compactable(keeping: newest) > 0 || hasUnusedViews {
                let target = storage.head.revision - max(0, newest)
                let external = try begin(now: 0, maxBytes: 0)
                emptied = try storage.compact(
                    through: target, entries: max(1, entries), bytes: Self.bytesPerStep)
                if compactable(keeping: newest) == 0 { hasUnusedViews = try removeUnusedViews() }
                try commit(external)
                feed.cache.raise(floor: storage.floor)
            }
            let isDone = compactable(keeping: newest) == 0 && !hasUnusedViews
            return CompactionStep(emptied: emptied, floor: feed.floor, isDone: isDone)
        } catch {
            needsRecovery = true
            hasUnusedViews = false
            fault = faultAfterRecovery(from: error)
            return CompactionStep(emptied: 0, floor: feed.floor, isDone: true)
        }
    }
}
