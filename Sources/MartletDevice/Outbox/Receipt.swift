public import MartletModel
internal import MartletProtocol

/// The outcome of one own change set.
///
/// ```swift
/// for receipt in try await client.receipts(limit: 20) where receipt.outcome == .refused {
///     print(receipt.identifier, receipt.message ?? "")
/// }
/// ```
public struct Receipt: Hashable, Sendable {
    /// How a change set ended.
    public enum Outcome: String, Hashable, Sendable {
        /// The server accepted it, at `revision`.
        case accepted
        /// The server refused it, or the device did because it had become stale or too large. It is
        /// parked until a person decides.
        case refused
        /// It was refused, and a person dropped it.
        case dropped
        /// It was refused, and a person sent it again as a new set.
        case retried
    }

    /// The set's identifier.
    public let identifier: String
    /// How the set ended.
    public let outcome: Outcome
    /// The revision at which the server accepted it; nil if it was not accepted.
    public let revision: Revision?
    /// The reason of the refusal; nil if there was none.
    public let reason: RefusalReason?
    /// A sentence about the refusal; nil if there was none.
    public let message: String?

    /// Creates a receipt.
    package init(
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

/// The effects of one batch of remote change.
package struct RebaseReport: Sendable {
    /// The receipts of own sets that were decided, including parked ones.
    package internal(set) var receipts: [Receipt] = []
    /// The number of records that sets of other devices changed.
    package internal(set) var remoteRecords = 0
    /// The number of temporary ids that became permanent.
    package internal(set) var assignedIDs = 0
    /// The number of own waiting sets that were undone and redone.
    package internal(set) var movedSets = 0
    /// The number of remote records that the tables refused.
    package internal(set) var quarantined = 0
    /// Remote values for which the tables have no place.
    package internal(set) var keptAside: [KeptAside] = []
    /// The number of change sets or deltas of other devices that the device had already.
    package internal(set) var passedOver = 0
    /// The outcome of own work, if the server turned out to have another history.
    package internal(set) var rejoined: Rejoined?
    /// Types whose tables may have changed.
    package internal(set) var changedTypes: Set<String> = []
    /// Records that may be gone, by type: deleted by other devices, or own new ones that were
    /// refused.
    package var removed: [String: Set<RecordID>] = [:]
    /// Seconds after which the device is to send a set again that the server could not take now.
    package internal(set) var retryAfter: Int64?

    package init() {}
}
