package import MartletModel
internal import MartletProtocol

/// Carries out `body` at a moment at which the rows of a data set are what its log says, while nobody
/// can write to either.
package typealias ConsistentReading = (
    _ body: () throws(StorageFault) -> Void
) throws(StorageFault) -> Void

/// The log as it is stored, for what is not held in memory.
///
/// Reads what is committed, on a connection of its own; confined to whoever holds it.
package protocol LogSource: AnyObject {
    /// What a difference is read with where other programs have written what is not in the log yet;
    /// set once by who can take it in. Not kept where the source sees to that by itself.
    var consistently: ConsistentReading? { get set }
    /// Frees memory and descriptors until the next question.
    func rest()
    /// Where the log ends now.
    func extent() throws(StorageFault) -> LogExtent
    /// Consecutive entries beginning with `first`; ends with `last`, or earlier with the entry
    /// that brings the bodies to `maxBytes`, or with the first one that compaction has emptied.
    func entries(
        from first: Revision, through last: Revision, maxBytes: Int
    ) throws(StorageFault) -> [LogEntry]
    /// The chained hash after an entry; nil where there is none.
    func hash(at revision: Revision) throws(StorageFault) -> LineageHash?
    /// The entries of these revisions, in any order; those that do not exist are left out.
    func entries(at revisions: [Revision]) throws(StorageFault) -> [LogEntry]
    /// The rows that changed after a revision, all read at one moment.
    /// - Parameter limit: Called once the moment is fixed. The part ends at the revision that it
    ///   returns, even if there are more.
    func difference(
        _ question: DifferenceRequest, limit: () -> Revision
    ) throws(StorageFault) -> DifferencePart
    /// When entries were accepted, in milliseconds since 1970; those that do not exist are left
    /// out.
    func times(of revisions: [Revision]) throws(StorageFault) -> [Revision: Int64]
    /// Consecutive entries beginning with `first` and compressed, where the source has them in
    /// that form; nil where the caller makes it of `entries`.
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

    package func rest() {}

    package func block(
        from first: Revision, through last: Revision
    ) throws(StorageFault) -> LogCache.Block? { nil }

    /// Calls `difference(_:limit:)` without a cursor.
    package func difference(
        after revision: Revision, maxBytes: Int, limit: () -> Revision
    ) throws(StorageFault) -> DifferencePart {
        try difference(DifferenceRequest(since: revision, maxBytes: maxBytes), limit: limit)
    }
}

/// Where a log ends and how much of it is whole, read at one moment.
package struct LogExtent: Hashable, Sendable {
    package var head: LogHead
    /// Entries up to this revision may have lost their bodies.
    package var floor: Revision

    package init(head: LogHead, floor: Revision) {
        self.head = head
        self.floor = floor
    }
}
