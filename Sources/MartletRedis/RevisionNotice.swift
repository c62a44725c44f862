package import MartletProtocol

/// What one server process tells the others: a data set has reached a revision.
package struct RevisionNotice: Hashable, Sendable {
    /// The data set's identity.
    package let dataSet: String
    package let revision: Revision

    package init(dataSet: String, revision: Revision) {
        self.dataSet = dataSet
        self.revision = revision
    }
}
