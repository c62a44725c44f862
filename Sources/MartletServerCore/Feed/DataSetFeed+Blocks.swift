package import MartletModel
internal import MartletProtocol

extension DataSetFeed {
    /// A block of entries in memory, with the facts that a cache outside the process stores about
    /// it.
    package struct HeldBlock: Sendable {
        package let block: LogCache.Block
        package let entries: [LogEntry]
        /// The chained hash before the first entry.
        package let before: LineageHash
    }

    /// Returns the block that begins at `first`, from memory; nil if memory does not have all of
    /// its entries whole.
    ///
    /// - Parameters:
    ///   - first: A revision at which a block begins: after a multiple of `LogCache.blockEntries`,
    ///     or after the block before.
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
        // Memory keeps the block, too, and serves devices that are behind from it.
        cache.keep(block, of: generation)
        return HeldBlock(block: block, entries: entries, before: before)
    }
}
