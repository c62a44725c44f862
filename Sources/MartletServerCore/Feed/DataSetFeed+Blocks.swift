package import MartletModel
internal import MartletProtocol

extension DataSetFeed {
    /// A block of entries in memory, with what a cache beside the process keeps of it.
    package struct HeldBlock: Sendable {
        package let block: LogCache.Block
        package let entries: [LogEntry]
        /// The chained hash before the first entry.
        package let before: LineageHash
    }

    /// The block that begins at `first`, from memory; nil where its entries are not there whole.
    /// - Parameters:
    ///   - first: Where blocks begin: behind a multiple of `LogCache.blockEntries`, or behind the
    ///     block before.
    ///   - last: The next multiple.
    package func heldBlock(from first: Revision, through last: Revision) -> HeldBlock? {
        let generation = cache.generation
        guard let before = cache.hash(at: first - 1),
            let entries = cache.entries(
                from: first, through: last, maxBytes: LogCache.blockBytes),
            let end = entries.last, entries.allSatisfy({ !$0.body.isEmpty }),
            end.revision == last
                || entries.reduce(0, { $0 + $1.body.count }) >= LogCache.blockBytes
        else { return nil }
        if let held = cache.block(from: first), held.last == end.revision {
            return HeldBlock(block: held, entries: entries, before: before)
        }
        guard let block = LogCache.Block(of: entries) else { return nil }
        // Who is behind is served from it, too.
        cache.keep(block, of: generation)
        return HeldBlock(block: block, entries: entries, before: before)
    }
}
