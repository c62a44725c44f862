package import MartletModel

/// The answer to `POST /sync`.
///
/// Accepted sets come first, both the device's own and missed ones, in the order of revisions; then
/// the refused ones. If the device applies an answer in this order, it reaches the true state at
/// `maxRevision`. If `more` is true, the answer was cut at a set boundary: it then has no refused
/// sets, and the device asks again.
package struct SyncAnswer: Hashable, Sendable {
    /// The revision that the device reaches when it has applied the answer.
    package var maxRevision: Revision
    /// Whether the server has newer entries than this answer carries.
    package var more: Bool
    /// The data set's identity.
    package var dataSet: String?
    /// The chained hash of the log entry `maxRevision`.
    package var lineage: String?
    /// The fingerprint of the server's schema.
    package var schema: String?
    /// The client id of the request that this answers. The next members are the revision that the
    /// request named, and its name. A device refuses an answer to another request.
    package var clientID: String?
    package var from: Revision?
    package var request: String?
    /// The number of the user's view: 0 if he sees everything; nil if there are no policies.
    package var view: Int64?
    /// The rules that concern the user, if the device has others.
    package var rules: UserRules?
    /// The comparison, if the request asked for one and the server could make it.
    package var check: CheckAnswer?
    /// The accepted sets, then the refused ones.
    package var changeSets: [ChangeSet]

    /// Where the answer leads to; nil if it names no lineage.
    package var end: HistoryMark? {
        lineage.map { HistoryMark(revision: maxRevision, lineage: $0) }
    }

    package init(maxRevision: Revision, more: Bool = false, changeSets: [ChangeSet] = []) {
        self.maxRevision = maxRevision
        self.more = more
        self.changeSets = changeSets
    }
}
