package import MartletModel
internal import MartletProtocol

/// The facts that the server keeps about a record in addition to its attributes, also after its
/// deletion.
package struct RowFacts: Hashable, Sendable {
    /// The revision at which the record last changed.
    package var revision: Revision
    /// The device that made that change; 0 if none is known.
    package var author: Int64
    /// The last revision by an author other than `author`; 0 if there is none. It is `leftOut`
    /// while the record is left out of the log.
    package var others: Revision
    package var isDeleted: Bool

    /// The value of `others` for a record that is left out of the log. An external write gave the
    /// record a value that devices cannot receive, so no device has seen its present state.
    package static let leftOut = Revision.max

    package init(revision: Revision, author: Int64, others: Revision, isDeleted: Bool = false) {
        self.revision = revision
        self.author = author
        self.others = others
        self.isDeleted = isDeleted
    }

    /// True if the record is left out of the log, so that no device has seen its present state.
    package var isLeftOut: Bool { others == Self.leftOut && !isDeleted }

    /// Returns the newest revision that a device must know to change the record. A device never
    /// conflicts with its own changes.
    package func newestByOthers(to device: Int64) -> Revision {
        if isLeftOut { return Self.leftOut }
        return device != 0 && author == device ? others : revision
    }

    /// Returns the facts after a device has changed or deleted the record. The log then has its
    /// state, so it is no longer left out.
    package func changed(by device: Int64, at revision: Revision, isDeleted: Bool) -> RowFacts {
        RowFacts(
            revision: revision, author: device,
            others: isLeftOut ? self.revision : newestByOthers(to: device), isDeleted: isDeleted)
    }

    /// Returns the facts of a record that is left out of the log from a revision on. It counts as changed at
    /// that revision, so views that show a part lose it.
    package static func leftOut(at revision: Revision) -> RowFacts {
        RowFacts(revision: revision, author: 0, others: leftOut)
    }
}
