public import MartletModel
internal import MartletProtocol

/// Where a listener to the change log goes on, and who it is.
///
/// The server answers with what comes after `since`; a listener that names its data set and the
/// hash of its version is told when the data set was made anew or restored.
public struct DeltaCursor: Hashable, Sendable {
    /// The version the listener has: everything up to it is there.
    public var since: Revision
    /// The device, so that it knows its own change sets when they return.
    public var clientID: String?
    /// The data set's identity; nil before the first answer.
    public var dataSet: String?
    /// The log's hash at `since`; nil where no answer has named it.
    public var lineage: String?

    public init(
        since: Revision, clientID: String? = nil, dataSet: String? = nil, lineage: String? = nil
    ) {
        self.since = since
        self.clientID = clientID
        self.dataSet = dataSet
        self.lineage = lineage
    }
}
