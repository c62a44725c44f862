package import MartletModel

/// A device's confirmation that nothing is left in its file of records that its user may not see.
package struct PurgeReceipt: Hashable, Sendable {
    /// The number of the user's view, as the server named it.
    package var view: Int64
    /// The revision at which this is so.
    package var revision: Revision
    /// The number of records that the device has removed for this reason since it exists, and the sum
    /// of the XXH64 of their names: the type, NUL, and the id.
    package var removed: RangeHash

    package init(view: Int64, revision: Revision, removed: RangeHash) {
        self.view = view
        self.revision = revision
        self.removed = removed
    }
}
