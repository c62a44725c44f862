package import MartletModel

/// The body of `POST /sync`: a device's changes, and its revision.
///
/// Only `maxRevision` and `changeSets` are required. If another member is missing, the receiver
/// omits the service that needs it (without `clientId`, it does not remember retries).
package struct SyncRequest: Hashable, Sendable {
    /// The device's name.
    package var clientID: String?
    /// The wire version that the device uses.
    package var protocolVersion: Int64?
    /// The newest revision the device has.
    package var maxRevision: Revision
    /// The sequence up to which every set of the device has been answered and the answer stored.
    package var acknowledged: Int64?
    /// The data set of the device, after the first answer.
    package var dataSet: String?
    /// The chained hash of the log entry `maxRevision`, as the server named it.
    package var lineage: String?
    /// The end of an answer, if the device has applied only its first entries. Then `lineage` is nil.
    package var partOf: HistoryMark?
    /// The revision before which the device sends no change set, if it has less; else nil.
    package var goal: Revision?
    /// The fingerprint of the device's schema.
    package var schema: String?
    /// The fingerprint of the rules that the device has; nil if it has none.
    package var rules: String?
    /// Whether the device wants a difference, which has whole rows, instead of log entries, because
    /// it could not apply these.
    package var wantsRows = false
    /// The bytes of change sets after which the answer is cut between two sets, for a slow line;
    /// nil for the server's limit.
    package var answerBytes: Int64?
    /// The request's name, which the answer repeats.
    package var request: String?
    /// The device's hashes, for the server to compare; nil if it asks for no comparison.
    package var check: CheckRequest?
    /// The device's confirmation of what it has removed; nil if there is nothing new to confirm.
    package var purged: PurgeReceipt?
    /// The device's change sets, in the order of their sequences.
    package var changeSets: [ChangeSet]

    package init(maxRevision: Revision, changeSets: [ChangeSet] = []) {
        self.maxRevision = maxRevision
        self.changeSets = changeSets
    }
}
