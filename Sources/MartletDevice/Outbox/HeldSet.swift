internal import MartletModel
internal import MartletProtocol

/// An own set of a history that the server does not share, while the server's state is taken over.
struct HeldSet {
    let sequence: Int64
    let identifier: String
    /// The user's time of the save.
    let timestamp: String
    let records: Int64
    let bytes: Int64
    var changes: [StoredChange]
    /// Whether the server had taken it.
    let wasConfirmed: Bool
}

/// Decides, as a matter of values alone, whether work of a lost history may be done again.
enum LostHistory {
    /// A record as the server has it now.
    struct Truth {
        let revision: Revision
        let image: Attributes
    }

    /// Whether an edit of a record overrides nothing that its author has not seen: he had seen this
    /// very state, at or before the common revision; or it is what he made the edit on.
    /// - Parameters:
    ///   - base: The record when it was edited; nil for one that was not confirmed then.
    ///   - common: The newest revision both histories share.
    static func hasSeen(_ truth: Truth, base: Attributes?, common: Revision) -> Bool {
        truth.revision <= common || base.map { isSame($0, truth.image) } ?? false
    }

    /// Whether the record of a number is the one that an edit meant. The numbers given after the
    /// common revision are given again, to other records.
    /// - Parameters:
    ///   - truth: The record of that number now; nil where there is none.
    ///   - known: The revision the device knew of the record; nil where it knew none.
    ///   - image: The record as the device had it.
    static func isMeant(
        _ truth: Truth?, known: Revision?, image: Attributes?, common: Revision
    ) -> Bool {
        // It existed before the histories parted, and no number is given twice in one of them.
        if let known, known <= common { return true }
        guard let truth else { return false }
        if truth.revision <= common { return true }
        return image.map { isSame($0, truth.image) } ?? false
    }

    /// Whether two images say the same; null is as good as nothing.
    static func isSame(_ left: Attributes, _ right: Attributes) -> Bool {
        let left = left.withoutNulls()
        let right = right.withoutNulls()
        return left.count == right.count
            && zip(left.names, left.values).allSatisfy { right[$0] == $1 }
    }
}
