package import MartletProtocol

/// The log as it is stored, for what is not held in memory.
///
/// Reads what is committed, on a connection of its own; confined to whoever holds it.
package protocol LogSource: AnyObject {
    /// Consecutive entries beginning with `first`; ends with `last`, or earlier with the entry
    /// that brings the bodies to `maxBytes`.
    func entries(
        from first: Revision, through last: Revision, maxBytes: Int
    ) throws(StorageFault) -> [LogEntry]
    /// The chained hash after an entry; nil where there is none.
    func hash(at revision: Revision) throws(StorageFault) -> LineageHash?
    /// The entries of these revisions, in any order; those that do not exist are left out.
    func entries(at revisions: [Revision]) throws(StorageFault) -> [LogEntry]
}
