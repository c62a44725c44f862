public import MartletModel

/// Deltas of whole change sets, in order: all there is after `from`, up to `nextVersion`.
///
/// It is applied where `from` ≤ cursor < `nextVersion`, in one transaction that also moves the
/// cursor to `nextVersion`; deltas at or below the cursor are passed over. Where `from` is past the
/// cursor something is missing, and the receiver asks for it first. A batch whose `nextVersion` the
/// cursor has reached changes nothing.
public struct DeltaBatch: Hashable, Sendable {
    /// The version after which the batch begins; nil where the sender does not say.
    public var from: Revision?
    public var deltas: [Delta]
    /// The cursor once the batch is applied.
    public var nextVersion: Revision
    /// The data set's identity.
    public var dataSet: String?
    /// The log's hash at `nextVersion`.
    public var lineage: String?
    /// Whether there is more to be had at once.
    public var more: Bool
    /// Whether the deltas are a difference: rows as they are now, whole, and records that are gone,
    /// in the order in which they last changed. Only the last of consecutive ones (without `more`)
    /// leads to a state the data set was in.
    public var isDifference = false
    /// Whether, for a receiver that takes entries only, something before the batches that follow
    /// has to be fetched otherwise: the log no longer has the entries after `from`. Such a batch
    /// has no deltas and leads nowhere.
    public var isBehind = false
    /// Of a batch that `isBehind`: the version after which the batches that follow it begin. Whoever
    /// fetches what is before has to reach it.
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
