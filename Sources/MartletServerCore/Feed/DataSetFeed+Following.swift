import MartletModel
import MartletProtocol

extension DataSetFeed {
    /// Entries others wrote that are taken into memory one by one; where there are more, only the
    /// log's end is, and the rest is read when it is asked for.
    private static let gapEntries = 2 * LogCache.blockEntries

    /// Brings memory to the log's end, as somebody found it.
    ///
    /// Harmless beside whoever else brings the same entries.
    /// - Parameters:
    ///   - place: What memory held before the end was looked up.
    ///   - maxBytes: Bytes of entries beyond which only the end is taken.
    func follow(
        to end: LogHead, floor: Revision, from place: (head: LogHead, generation: Int),
        log: any LogSource, maxBytes: Int
    ) throws(StorageFault) {
        let held = place.head
        if held != end {
            let gap = end.revision - held.revision
            var entries: [LogEntry] = []
            if gap > 0, gap <= Self.gapEntries {
                entries = try log.entries(
                    from: held.revision + 1, through: end.revision, maxBytes: maxBytes)
            }
            guard joins(entries, held, end) else {
                let known = gap > 0 ? try log.hash(at: held.revision) : nil
                reset(to: end, floor: floor, ifAt: place, isSame: known == held.hash)
                return
            }
            cache.append(entries, to: place.generation)
        }
        cache.raise(floor: floor)
    }

    /// Whether the entries lead from the one end of the log to the other.
    private func joins(_ entries: [LogEntry], _ held: LogHead, _ end: LogHead) -> Bool {
        // An entry that compaction has emptied no longer gives its hash.
        guard let first = entries.first, let last = entries.last, !first.body.isEmpty else {
            return false
        }
        return first.revision == held.revision + 1
            && first.hash == held.hash.appending(first.body, identifier: first.identifier)
            && last.revision == end.revision && last.hash == end.hash
    }

    /// Forgets what was in memory of the log: it ends there.
    /// - Parameters:
    ///   - place: Only where this is still what is held; nil: in any case.
    ///   - isSame: Whether it is the log it was; another one has other devices.
    func reset(
        to head: LogHead, floor: Revision, ifAt place: (head: LogHead, generation: Int)? = nil,
        isSame: Bool = false
    ) {
        guard cache.reset(to: head, floor: floor, ifAt: place), !isSame else { return }
        deltaCache.clear()
        forgetDevices()
    }
}
