package import MartletModel
internal import MartletProtocol

/// The position at which a listener to the change log continues, and the listener's identity.
///
/// The server answers with the changes after `since`. If the listener names its data set and the
/// lineage at `since`, the server can tell it that the data set was recreated or restored.
package struct DeltaCursor: Hashable, Sendable {
    /// The revision up to which the listener has every change.
    package var since: Revision
    /// The device's name, by which the server marks the device's own change sets in its answer.
    package var clientID: String?
    /// The data set's identity; nil before the first answer.
    package var dataSet: String?
    /// The log's hash at `since`; nil if no answer has named it.
    package var lineage: String?

    /// Creates a cursor.
    package init(
        since: Revision, clientID: String? = nil, dataSet: String? = nil, lineage: String? = nil
    ) {
        self.since = since
        self.clientID = clientID
        self.dataSet = dataSet
        self.lineage = lineage
    }
}
