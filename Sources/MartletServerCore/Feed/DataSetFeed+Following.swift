import MartletModel
import MartletProtocol

extension DataSetFeed {
    /// The most entries of other processes that memory takes one by one. If there are more, it
    /// takes only the log's end, and the rest is read on request.
    private static let gapEntries = 2 * LogCache.blockEntries

    /// Brings memory to the log's end, as a caller found it.
    ///
    /// Two callers may bring the same entries without harm.
    ///
    /// - Parameters:
    ///   - version: The version of memory before the end was looked up.
    ///   - maxBytes: The bytes of entries above which memory takes only the end.
    func follow(
        to end: LogHead, floor: Revision, from version: (head: LogHead, generation: Int),
        log: any LogSource, maxBytes: Int
    ) throws(StorageFault) {
        let held = version.head
        if held != end {
            let gap = end.revision - held.revision
            var entries: [LogEntry] = []
            if gap > 0, gap <= Self.gapEntries {
                entries = try log.entries(
                    from: held.revision + 1, through: end.revision, maxBytes: maxBytes)
            }
            guard joins(entries, held, end) else {
                let known = gap > 0 ? try log.hash(at: held.revision) : nil
                reset(to: end, floor: floor, ifAt: version, isSame: known == held.hash)
                return
            }
            cache.append(entries, to: version.generation)
        }
        cache.raise(floor: floor)
    }

    /// Returns whether the entries lead from one end of the log to the other.
    private func joins(_ entries: [LogEntry], _ held: LogHead, _ end: LogHead) -> Bool {
        // An entry that compaction has emptied no longer gives its hash.
        guard let first = entries.first, let last = entries.last, !first.body.isEmpty else {
            return false
        }
        return first.revision == held.revision + 1
            && first.hash == held.hash.appending(first.body, identifier: first.identifier)
            && last.revision == end.revision && last.hash == end.hash
    }

    /// Forgets the log in memory, and notes its end.
    ///
    /// - Parameters:
    ///   - version: Memory is reset only if this is still its version; nil resets it in any case.
    ///   - isSame: True if it is the same log. A different log has different devices.
    func reset(
        to head: LogHead, floor: Revision, ifAt version: (head: LogHead, generation: Int)? = nil,
        isSame: Bool = false
    ) {
        guard cache.reset(to: head, floor: floor, ifAt: version), !isSame else { return }
        if version != nil { meetOtherLog() }
        deltaCache.clear()
        forgetDevices()
        views.forget()
    }
}
