package import MartletModel
internal import MartletProtocol
package import MartletServerCore

/// Publishes this process's commits to other processes: the new revision at once, then the blocks
/// that it completed.
///
/// It is confined to its holder and runs alongside the writer, so Redis slows down no commit.
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

    /// Publishes that this process has committed up to a revision.
    package func reached(_ revision: Revision) {
        guard revision != told else { return }
        // The log was replaced by a shorter one.
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

    /// Stores the blocks of a span from memory. If a block is not in memory, the first process that
    /// reads it stores it.
    private func putBlocks(through end: Revision) {
        var first = end - LogCache.blockEntries + 1
        while first <= end, let held = feed.heldBlock(from: first, through: end) {
            shelf.put(SealedBlock(held.block, entries: held.entries, before: held.before))
            first = held.block.last + 1
        }
    }

    /// Closes the connection.
    package func close() { link.close() }
}

@available(*, unavailable)
extension CommitOutlet: Sendable {}
