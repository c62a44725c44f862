public import MartletModel

/// The answer to `POST /sync`.
///
/// Accepted sets come first, missed and own, in revision order; then the refused ones. Applied in
/// the order given, an answer ends in the true state at `maxRevision`. When `more` is true the
/// answer was cut at a set boundary: refused sets are then left out, and the device asks again.
public struct SyncAnswer: Hashable, Sendable {
    /// The revision the device has reached once it applied the answer.
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
    /// What a comparison found, where one was asked for and could be made.
    public var check: CheckAnswer?
    public var changeSets: [ChangeSet]

    public init(maxRevision: Revision, more: Bool = false, changeSets: [ChangeSet] = []) {
        self.maxRevision = maxRevision
        self.more = more
        self.changeSets = changeSets
    }
}
