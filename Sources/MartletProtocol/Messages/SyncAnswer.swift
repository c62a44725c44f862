public import MartletModel

/// The answer to `POST /sync`.
///
/// Accepted sets come first, both the device's own and missed ones, in the order of revisions; then
/// the refused ones. If the device applies an answer in this order, it reaches the true state at
/// `maxRevision`. If `more` is true, the answer was cut at a set boundary: it then has no refused
/// sets, and the device asks again.
public struct SyncAnswer: Hashable, Sendable {
    /// The revision that the device reaches when it has applied the answer.
    public var maxRevision: Revision
    /// Whether the server has newer entries than this answer carries.
    public var more: Bool
    /// The data set's identity.
    public var dataSet: String?
    /// The chained hash of the log entry `maxRevision`.
    public var lineage: String?
    /// The fingerprint of the server's schema.
    public var schema: String?
    /// The client id of the request that this answers. The next members are the revision that the
    /// request named, and its name. A device refuses an answer to another request.
    public var clientID: String?
    public var from: Revision?
    public var request: String?
    /// The comparison, if the request asked for one and the server could make it.
    public var check: CheckAnswer?
    /// The accepted sets, then the refused ones.
    public var changeSets: [ChangeSet]

    public init(maxRevision: Revision, more: Bool = false, changeSets: [ChangeSet] = []) {
        self.maxRevision = maxRevision
        self.more = more
        self.changeSets = changeSets
    }
}
