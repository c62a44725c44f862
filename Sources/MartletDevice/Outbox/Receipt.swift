public import MartletModel
internal import MartletProtocol

/// The fate of one own change set.
public struct Receipt: Hashable, Sendable {
    /// How a change set ended.
    public enum Outcome: String, Hashable, Sendable {
        /// The server took it, at `revision`.
        case accepted
        /// It was refused and is parked until someone decides.
        case refused
        /// It was refused, and someone dropped it.
        case dropped
        /// It was refused, and someone sent it again as a new set.
        case retried
    }

    public let identifier: String
    public let outcome: Outcome
    public let revision: Revision?
    public let reason: RefusalReason?
    public let message: String?

    public init(
        identifier: String, outcome: Outcome, revision: Revision? = nil,
        reason: RefusalReason? = nil, message: String? = nil
    ) {
        self.identifier = identifier
        self.outcome = outcome
        self.revision = revision
        self.reason = reason
        self.message = message
    }
}

/// What one application of remote change did.
package struct RebaseReport: Sendable {
    /// Fates that became known, parked sets among them.
    package internal(set) var receipts: [Receipt] = []
    /// Records of other people's sets.
    package internal(set) var remoteRecords = 0
    /// Temporary ids that became permanent.
    package internal(set) var assignedIDs = 0
    /// The number of own waiting sets that were undone and redone.
    package internal(set) var movedSets = 0
    /// Remote records the tables refused.
    package internal(set) var quarantined = 0
    /// Remote values for which the tables have no place.
    package internal(set) var keptAside: [KeptAside] = []
    /// The number of others' change sets, or their deltas, that the device had already.
    package internal(set) var passedOver = 0
    /// What became of own work when the server's history turned out to be another one.
    package internal(set) var rejoined: Rejoined?
    /// Types whose tables may look different now.
    package internal(set) var changedTypes: Set<String> = []
    /// Records that may be gone, by type: deleted by others, or own new ones that were refused.
    package var removed: [String: Set<RecordID>] = [:]
    /// Seconds after which the server wants a set again that it could not take now.
    package internal(set) var retryAfter: Int64?

    package init() {}
}
