package import MartletModel
internal import MartletProtocol

/// Runs a function at a moment when the rows of a data set equal its log, while no program can
/// write to either.
package typealias ConsistentReading = (
    _ body: () throws(StorageFault) -> Void
) throws(StorageFault) -> Void

/// The stored log, for entries that are not in memory.
///
/// It reads committed entries on a connection of its own, and is confined to the queue of its
/// holder. A call throws `StorageFault` if the log cannot be read.
package protocol LogSource: AnyObject {
    /// The function in which a difference is read if external writes may wait for the log. The
    /// holder that can take the writes in sets it once. A source that needs no such function does
    /// not keep it.
    var consistently: ConsistentReading? { get set }
    /// Frees memory and descriptors until the next request.
    func release()
    /// Returns the present end of the log, and its floor.
    func extent() throws(StorageFault) -> LogExtent
    /// Returns consecutive entries from `first`. They end with `last`, or earlier with the entry
    /// that brings the bodies to `maxBytes`, or with the first entry that compaction has emptied.
    func entries(
        from first: Revision, through last: Revision, maxBytes: Int
    ) throws(StorageFault) -> [LogEntry]
    /// Returns the chained hash after an entry; nil if there is no such entry.
    func hash(at revision: Revision) throws(StorageFault) -> LineageHash?
    /// Returns the revision up to which a device's confirmation counts, as `DeviceNote.confirmed` says it.
    func confirmation(of device: Int64) throws(StorageFault) -> Revision?
    /// Returns the entries of these revisions, in any order, without those that do not exist.
    func entries(at revisions: [Revision]) throws(StorageFault) -> [LogEntry]
    /// Returns the rows that changed after a revision, all read at one moment.
    ///
    /// - Parameter limit: Called once the moment is fixed. The part ends at the revision that it
    ///   returns, even if there are more.
    func difference(
        _ request: DifferenceRequest, limit: () -> Revision
    ) throws(StorageFault) -> DifferencePart
    /// Returns the times when entries were accepted, in milliseconds since 1970, without entries
    /// that do not exist.
    func times(of revisions: [Revision]) throws(StorageFault) -> [Revision: Int64]
    /// Returns consecutive entries from `first`, compressed, if the source has them in that form;
    /// nil if the caller has to make the block from `entries`.
    ///
    /// - Parameter last: The end of a span of blocks. The block ends there, or earlier with the
    ///   entry that brings the bodies to `LogCache.blockBytes`.
    func block(
        from first: Revision, through last: Revision
    ) throws(StorageFault) -> LogCache.Block?
}

extension LogSource {
    package var consistently: ConsistentReading? {
        get { nil }
        set {}
    }

    package func release() {}

    package func block(
        from first: Revision, through last: Revision
    ) throws(StorageFault) -> LogCache.Block? { nil }

    /// Calls `difference(_:limit:)` without a cursor.
    ///
    /// - Throws: `StorageFault` if the log cannot be read.
    package func difference(
        after revision: Revision, maxBytes: Int, limit: () -> Revision
    ) throws(StorageFault) -> DifferencePart {
        try difference(DifferenceRequest(since: revision, maxBytes: maxBytes), limit: limit)
    }
}

/// The end of a log and the extent of its whole entries, read at one moment.
package struct LogExtent: Hashable, Sendable {
    package var head: LogHead
    /// The revision up to which entries may have lost their bodies.
    package var floor: Revision

    package init(head: LogHead, floor: Revision) {
        self.head = head
        self.floor = floor
    }
}
