package import MartletModel
internal import MartletProtocol
package import MartletServerCore

/// Tells other processes of what this one has committed: the new revision at once, then the blocks
/// that it completed.
///
/// Confined to whoever holds it, beside the writer: Redis slows down no commit.
package final class CommitOutlet {
    private let feed: DataSetFeed
    private let shelf: BlockShelf
    private let link: RedisLink
    private var told: Revision

    package init(feed: DataSetFeed, shelf: BlockShelf, link: RedisLink) {
        self.feed = feed
        self.shelf = shelf
        self.link = link
        told = feed.head.revision
    }

    /// This process has committed up to a revision.
    package func reached(_ revision: Revision) {
        guard revision != told else { return }
        // The log is another one than it was, and shorter.
        if revision < told { told = revision - 1 }
        let notice = RevisionNotice(dataSet: shelf.dataSet, revision: revision)
        if link.answers(to: [notice.command]) != nil { link.counters.count { $0.notices += 1 } }
        var end = CachedLog.spanEnd(told + 1)
        told = revision
        while end <= revision {
            putBlocks(through: end)
            end += LogCache.blockEntries
        }
    }

    /// Puts the blocks of a span from memory. What is not there is put by whoever reads it first.
    private func putBlocks(through end: Revision) {
        var first = end - LogCache.blockEntries + 1
        while first <= end, let held = feed.heldBlock(from: first, through: end) {
            shelf.put(SealedBlock(held.block, entries: held.entries, before: held.before))
            first = held.block.last + 1
        }
    }

    /// Hangs up.
    package func close() { link.close() }
}

@available(*, unavailable)
extension CommitOutlet: Sendable {}
