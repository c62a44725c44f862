public import MartletModel
internal import MartletProtocol

/// The position at which a listener to the change log continues, and the listener's identity.
///
/// The server answers with the changes after `since`. If the listener names its data set and the
/// lineage at `since`, the server can tell it that the data set was recreated or restored.
public struct DeltaCursor: Hashable, Sendable {
    /// The revision up to which the listener has every change.
    public var since: Revision
    /// The device's name, by which the server marks the device's own change sets in its answer.
    public var clientID: String?
    /// The data set's identity; nil before the first answer.
    public var dataSet: String?
    /// The log's hash at `since`; nil if no answer has named it.
    public var lineage: String?

    /// Creates a cursor.
    public init(
        since: Revision, clientID: String? = nil, dataSet: String? = nil, lineage: String? = nil
    ) {
        self.since = since
        self.clientID = clientID
        self.dataSet = dataSet
        self.lineage = lineage
    }
}
