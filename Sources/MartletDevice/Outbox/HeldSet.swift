internal import MartletModel
internal import MartletProtocol

/// An own set of a history that the server does not share. The device holds it in memory while it
/// takes the server's state over.
struct HeldSet {
    let sequence: Int64
    let identifier: String
    /// The user's time of the save.
    let timestamp: String
    let records: Int64
    let bytes: Int64
    var changes: [StoredChange]
    /// Whether the server had accepted it.
    let wasConfirmed: Bool
}

/// Decides, from values alone, whether work of a lost history may be redone.
enum LostHistory {
    /// A record as the server has it now.
    struct Truth {
        let revision: Revision
        let image: Attributes
    }

    /// Returns whether an edit of a record overrides nothing that its author has not seen: the
    /// record last changed at or before the common revision, or it equals the base of the edit.
    /// - Parameters:
    ///   - base: The record when it was edited; nil if it was not confirmed then.
    ///   - common: The newest revision that both histories share.
    static func hasSeen(_ truth: Truth, base: Attributes?, common: Revision) -> Bool {
        truth.revision <= common || base.map { isSame($0, truth.image) } ?? false
    }

    /// Returns whether the record that has an id now is the one that the edit meant. The server
    /// assigns the ids of the time after the common revision again, to other records.
    /// - Parameters:
    ///   - truth: The record with that id now; nil if there is none.
    ///   - known: The revision that the device knew of the record; nil if it knew none.
    ///   - image: The record as the device had it.
    static func isMeant(
        _ truth: Truth?, known: Revision?, image: Attributes?, common: Revision
    ) -> Bool {
        // It existed before the histories parted, and no id is assigned twice in one of them.
        if let known, known <= common { return true }
        guard let truth else { return false }
        if truth.revision <= common { return true }
        return image.map { isSame($0, truth.image) } ?? false
    }

    /// Returns whether two images are equal. A null value counts as a missing one.
    static func isSame(_ left: Attributes, _ right: Attributes) -> Bool {
        let left = left.withoutNulls()
        let right = right.withoutNulls()
        return left.count == right.count
            && zip(left.names, left.values).allSatisfy { right[$0] == $1 }
    }
}
