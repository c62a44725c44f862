internal import MartletModel
internal import MartletProtocol

extension SyncAnswer {
    /// What is wrong with the order of an answer's sets; nil where it is sound.
    ///
    /// Sets the device has yet to apply come in the order of the log, each once, and none is newer
    /// than the revision the answer ends at. In any other order an older change would be put over a
    /// newer one, and stay.
    /// - Parameter cursor: What the device has, or has staged; sets up to it are passed over when
    ///   they are applied, so their order does not matter.
    func disorder(after cursor: Revision) -> String? {
        var last = cursor
        for set in changeSets where set.conflict != true {
            guard let revision = set.revision else {
                return "An accepted change set has no revision."
            }
            guard revision <= maxRevision else {
                return "A change set of revision \(revision) is in an answer that ends at"
                    + " \(maxRevision)."
            }
            // What a difference covers may come again behind it: the fate of own sets.
            guard revision > cursor, !set.isDifference else { continue }
            guard revision > last else {
                return "Revision \(revision) comes after revision \(last)."
            }
            last = revision
        }
        return nil
    }
}
