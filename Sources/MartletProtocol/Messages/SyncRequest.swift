public import MartletModel

/// The body of `POST /sync`: a device's changes, and how far it has come.
///
/// Only `maxRevision` and `changeSets` are required. A receiver that finds any other member
/// missing goes without the service it gives (no `clientId`: no memory of retries).
public struct SyncRequest: Hashable, Sendable {
    /// The device, for its life.
    public var clientID: String?
    /// The wire version the device speaks.
    public var protocolVersion: Int64?
    /// The newest revision the device has.
    public var maxRevision: Revision
    /// Every set of the device numbered up to this has been answered and the answer stored.
    public var acknowledged: Int64?
    /// The data set the device belongs to, from the first answer on.
    public var dataSet: String?
    /// The chained hash of the log entry `maxRevision`, as the server named it.
    public var lineage: String?
    /// The fingerprint of the schema the device works with.
    public var schema: String?
    /// Whether the device wants rows as they are now, a difference, instead of log entries: it
    /// could not apply these.
    public var wantsRows = false
    /// The bytes of change sets after which the answer is cut between two sets, for a slow line;
    /// nil for the server's limit.
    public var answerBytes: Int64?
    /// The request's name, which the answer repeats.
    public var request: String?
    /// What the device holds, to be compared; nil: nothing.
    public var check: CheckRequest?
    public var changeSets: [ChangeSet]

    public init(maxRevision: Revision, changeSets: [ChangeSet] = []) {
        self.maxRevision = maxRevision
        self.changeSets = changeSets
    }
}
