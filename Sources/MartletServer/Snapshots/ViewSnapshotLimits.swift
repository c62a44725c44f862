/// The limits of snapshots for people who see a part of a data set; see docs/policies.md. They hold for
/// each data set.
public struct ViewSnapshotLimits: Hashable, Sendable {
    /// The most snapshots; 0 for none.
    public var count = 16
    /// The most bytes of their files.
    public var bytes: Int64 = 1 << 30
    /// The number of records that a view must show before it gets a snapshot.
    public var leastRecords: Int64 = 10_000

    public init() {}
}
