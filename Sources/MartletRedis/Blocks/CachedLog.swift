package import MartletModel
internal import MartletProtocol
package import MartletServerCore

/// A log whose blocks of entries are read from Redis if they are there, and from the storage
/// otherwise.
///
/// It trusts nothing in Redis. A block counts only if a server process has sealed it, and the
/// stored log has the hash that the block ends with. Everything else is a miss. The log is confined
/// to its holder.
package final class CachedLog: LogSource {
    /// The most blocks to read to find the one with an entry. A span of large entries has several.
    private static let stepsAtMost = 8

    private let source: any LogSource
    private let shelf: BlockShelf
    /// The entries of the last unpacked block, because a caller that reads entries one after
    /// another needs it again.
    private var unpacked: [LogEntry] = []
    private var isOpen = false

    package init(_ source: any LogSource, shelf: BlockShelf) {
        self.source = source
        self.shelf = shelf
    }

    package func extent() throws(StorageFault) -> LogExtent {
        let extent = try source.extent()
        // A caller of this method follows the log, and needs entries sooner or later. A connection
        // that is made only then, at an unknown moment, would look like a leak in a server that
        // runs for long.
        if !isOpen {
            isOpen = true
            shelf.open()
        }
        return extent
    }

    package func block(
        from first: Revision, through last: Revision
    ) throws(StorageFault) -> LogCache.Block? {
        guard last == Self.spanEnd(first) else { return nil }
        if let sealed = try sealed(first, through: last) { return sealed.block }
        let entries = try source.entries(
            from: first, through: last, maxBytes: LogCache.blockBytes)
        return try keep(entries, from: first, through: last)
    }

    package func entries(
        from first: Revision, through last: Revision, maxBytes: Int
    ) throws(StorageFault) -> [LogEntry] {
        if let held = Self.part(of: unpacked, first, last, maxBytes), let newest = unpacked.last,
            try source.hash(at: newest.revision) == newest.hash
        {
            return held
        }
        let end = Self.spanEnd(first)
        // The newest entries are in no complete block yet.
        if last >= end, let held = try unpack(first, through: end) {
            return Self.part(of: held, first, last, maxBytes) ?? []
        }
        let entries = try source.entries(from: first, through: last, maxBytes: maxBytes)
        if last == end, first == end - LogCache.blockEntries + 1, maxBytes >= LogCache.blockBytes {
            _ = try keep(entries, from: first, through: end)
        }
        return entries
    }

    /// Returns the entries of the block that holds `first`; nil if Redis does not have it.
    private func unpack(
        _ first: Revision, through end: Revision
    ) throws(StorageFault) -> [LogEntry]? {
        var start = end - LogCache.blockEntries + 1
        for _ in 0..<Self.stepsAtMost {
            guard let sealed = try sealed(start, through: end) else { return nil }
            start = sealed.block.last + 1
            guard start > first else { continue }
            guard let entries = sealed.entries() else { return nil }
            unpacked = entries
            return entries
        }
        return nil
    }

    private func sealed(
        _ first: Revision, through last: Revision
    ) throws(StorageFault) -> SealedBlock? {
        let sealed = try shelf.block(from: first) { (revision, hash) throws(StorageFault) in
            guard revision <= last else { return false }
            return try source.hash(at: revision) == hash
        }
        return sealed
    }

    /// Stores the block that entries form, and returns it; nil if they do not form one.
    private func keep(
        _ entries: [LogEntry], from first: Revision, through last: Revision
    ) throws(StorageFault) -> LogCache.Block? {
        let bytes = entries.reduce(0) { $0 + $1.body.count }
        guard entries.first?.revision == first, let end = entries.last?.revision,
            entries.count == Int(end - first) + 1, entries.allSatisfy({ !$0.body.isEmpty }),
            end == last || bytes >= LogCache.blockBytes,
            let before = try source.hash(at: first - 1), let block = LogCache.Block(of: entries)
        else { return nil }
        shelf.put(SealedBlock(block, entries: entries, before: before))
        return block
    }

    /// Returns the last revision that a block with this entry can have.
    static func spanEnd(_ revision: Revision) -> Revision {
        ((revision - 1) / LogCache.blockEntries + 1) * LogCache.blockEntries
    }

    /// Returns the part of consecutive entries that answers a request; nil if `first` is not among
    /// them.
    private static func part(
        of entries: [LogEntry], _ first: Revision, _ last: Revision, _ maxBytes: Int
    ) -> [LogEntry]? {
        guard let start = entries.first?.revision, let end = entries.last?.revision,
            first >= start, first <= end
        else { return nil }
        var found: [LogEntry] = []
        var bytes = 0
        for entry in entries[Int(first - start)...]
        where bytes < maxBytes && entry.revision <= last {
            found.append(entry)
            bytes += entry.body.count
        }
        return found
    }

    // MARK: - What only the storage knows

    package func hash(at revision: Revision) throws(StorageFault) -> LineageHash? {
        try source.hash(at: revision)
    }

    package func confirmation(of device: Int64) throws(StorageFault) -> Revision? {
        try source.confirmation(of: device)
    }

    package func entries(at revisions: [Revision]) throws(StorageFault) -> [LogEntry] {
        try source.entries(at: revisions)
    }

    package func difference(
        _ request: DifferenceRequest, limit: () -> Revision
    ) throws(StorageFault) -> DifferencePart {
        try source.difference(request, limit: limit)
    }

    package func times(of revisions: [Revision]) throws(StorageFault) -> [Revision: Int64] {
        try source.times(of: revisions)
    }
}

@available(*, unavailable)
extension CachedLog: Sendable {}
