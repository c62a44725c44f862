internal import MartletModel
internal import MartletProtocol

extension SyncAnswer {
    /// Returns a sentence about a wrong order of an answer's sets; nil if the order is sound.
    ///
    /// Sets that the device has yet to apply must come in the order of the log, each once, and none
    /// newer than the revision at which the answer ends. In any other order an older change would
    /// overwrite a newer one, and stay.
    /// - Parameter cursor: The revision that the device has, or has staged. Sets up to it are
    ///   skipped when they are applied, so their order does not matter.
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
            // Sets that a difference covers may follow it again, because they are verdicts on own
            // sets.
            guard revision > cursor, !set.isDifference else { continue }
            guard revision > last else {
                return "Revision \(revision) comes after revision \(last)."
            }
            last = revision
        }
        return nil
    }
}
