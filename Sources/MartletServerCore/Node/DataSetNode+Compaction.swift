public import MartletModel
internal import MartletProtocol

/// What one step of compaction came to.
public struct CompactionStep: Hashable, Sendable {
    /// Entries that lost their bodies.
    public var emptied: Int
    /// The new floor: who is behind it gets a difference.
    public var floor: Revision
    /// Whether there is nothing left to do for now.
    public var isDone: Bool
}

extension DataSetNode {
    /// Entries of one step at most: what a write may have to wait for.
    public static let entriesPerStep = 256
    /// Bytes of bodies after which a step ends.
    private static let bytesPerStep = 4 << 20

    /// How many entries could lose their bodies if the newest ones are kept.
    public func compactable(keeping newest: Int64) -> Int64 {
        max(0, storage.head.revision - max(0, newest) - storage.floor)
    }

    /// Empties entries older than the newest ones, a bounded number in one transaction of its own.
    ///
    /// An entry loses its body and the ids its records had on their device; it keeps its revision,
    /// identifier, number, content hash and chained hash, so verdicts are repeated and lineage is
    /// checked for ever. Entries their authors have not acknowledged keep everything. On a fault
    /// nothing has happened, and `takeFault` tells of it.
    /// - Parameters:
    ///   - newest: How many entries stay whole.
    ///   - entries: How many entries the step passes at most.
    public func compact(
        keeping newest: Int64, entries: Int = DataSetNode.entriesPerStep
    ) -> CompactionStep {
        do throws(StorageFault) {
            if needsRecovery { try recover() }
            var emptied = 0
            if compactable(keeping: newest) > 0 {
                let target = storage.head.revision - max(0, newest)
                let external = try begin(now: 0, maxBytes: 0)
                emptied = try storage.compact(
                    through: target, entries: max(1, entries), bytes: Self.bytesPerStep)
                try commit(external)
                feed.cache.raise(floor: storage.floor)
            }
            return CompactionStep(
                emptied: emptied, floor: feed.floor, isDone: compactable(keeping: newest) == 0)
        } catch {
            needsRecovery = true
            fault = faultAfterRecovery(from: error)
            return CompactionStep(emptied: 0, floor: feed.floor, isDone: true)
        }
    }
}
