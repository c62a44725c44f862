package import MartletModel

/// A revision of a history, and the hash that tells the history apart from others.
package struct HistoryMark: Hashable, Sendable {
    package var revision: Revision
    /// The lineage there, as the server named it.
    package var lineage: String

    package init(revision: Revision, lineage: String) {
        self.revision = revision
        self.lineage = lineage
    }
}
