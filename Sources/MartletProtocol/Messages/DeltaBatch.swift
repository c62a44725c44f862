public import MartletModel

/// The deltas of whole change sets, in order: all changes after `from`, up to `nextVersion`.
///
/// The receiver applies a batch if `from` ≤ cursor < `nextVersion`, in one transaction that also
/// moves the cursor to `nextVersion`. It skips deltas at or below the cursor. If `from` is after
/// the cursor, something is missing, and the receiver asks for it first. If the cursor has reached
/// `nextVersion`, the batch changes nothing.
public struct DeltaBatch: Hashable, Sendable {
    /// The version after which the batch begins; nil if the sender does not name it.
    public var from: Revision?
    /// The deltas, in the order in which they apply.
    public var deltas: [Delta]
    /// The cursor once the batch is applied.
    public var nextVersion: Revision
    /// The data set's identity.
    public var dataSet: String?
    /// The log's hash at `nextVersion`.
    public var lineage: String?
    /// Whether the sender has more batches available at once.
    public var more: Bool
    /// Whether the deltas are a difference: whole rows as they are now, and deleted records, in the
    /// order in which they last changed. Only the last of consecutive differences (without `more`)
    /// leads to a state that the data set was in.
    public var isDifference = false
    /// Whether the receiver has to fetch something in another way before the following batches,
    /// because it accepts only entries, and the log no longer has the entries after `from`. Such a
    /// batch has no deltas and leads to no revision.
    public var isBehind = false
    /// The version after which the following batches begin, if `isBehind` is true. An exchange has
    /// to reach it first.
    public var goesOn: Revision?

    public init(
        from: Revision? = nil, deltas: [Delta], nextVersion: Revision, dataSet: String? = nil,
        lineage: String? = nil, more: Bool = false
    ) {
        self.from = from
        self.deltas = deltas
        self.nextVersion = nextVersion
        self.dataSet = dataSet
        self.lineage = lineage
        self.more = more
    }
}
