public import MartletModel
internal import MartletProtocol

/// The server's facts that bear on one change set, at one moment.
public struct SetFacts: Sendable {
    /// The earlier verdict on the set, or on another one with its identifier.
    public var decided: DecidedSet?
    /// The set to which its device gave the same number before; nil if the number is new or there
    /// is none.
    public var used: UsedSequence?
    /// True if the set named as `dependencyIdentifier` has been decided, either way.
    public var isDependencyDecided = false
    /// The facts of the records that the set names, by permanent id. A record that never existed is
    /// absent.
    public var rows: [RecordAddress: RowFacts] = [:]
    /// The permanent ids of `SetPlan.earlierTemporaries`, if the device's id map has them.
    public var permanent: [RecordAddress: RecordID] = [:]
    /// The temporary ids that the set creates, although an earlier set of the device has created
    /// them.
    public var usedTemporaries: [RecordAddress] = []
    /// The effects of ON DELETE actions on records other than those that the set deletes.
    public var affected: [AffectedRow] = []
    /// True if the search for the facts was given up because it took too long.
    public var isExcessive = false
    /// The reason why the database cannot hold the set, whatever the other facts are.
    public var refusal: Refusal?

    public init() {}

    /// Clears the facts of earlier records with the keys that the set creates, once the set is
    /// judged acceptable. Its author knew their states, so later edits of the new record override
    /// no other author.
    public mutating func beginAnew(with plan: SetPlan) {
        guard !rows.isEmpty else { return }
        for create in plan.creates { rows[create.address] = nil }
    }
}

/// A change set whose number is taken.
public struct UsedSequence: Hashable, Sendable {
    public let identifier: String?
    /// The SHA-256 of the set's bytes.
    public let content: [UInt8]

    public init(identifier: String?, content: [UInt8]) {
        self.identifier = identifier
        self.content = content
    }
}

/// A set that was decided before: its verdict, and what tells whether it is the same set.
public struct DecidedSet: Hashable, Sendable {
    /// The outcome for a set.
    public enum Verdict: Hashable, Sendable {
        /// The set was accepted, as this revision.
        case accepted(Revision)
        case refused(Refusal)
    }

    public let verdict: Verdict
    /// True if the set has the same bytes as the decided one.
    public let isSameContent: Bool
    /// True if it came from the same principal, as far as that is known.
    public let isSamePrincipal: Bool

    public init(verdict: Verdict, isSameContent: Bool, isSamePrincipal: Bool) {
        self.verdict = verdict
        self.isSameContent = isSameContent
        self.isSamePrincipal = isSamePrincipal
    }
}

/// A record that an ON DELETE action changes.
public struct AffectedRow: Hashable, Sendable {
    /// The effect on the record.
    public enum Effect: Hashable, Sendable {
        /// CASCADE deletes the record.
        case removed
        /// SET NULL or SET DEFAULT changes the attribute that held the id.
        case changed(attribute: String, held: RecordID)
    }

    public let address: RecordAddress
    public let effect: Effect
    /// The facts; nil if the server has none because an external write made the row.
    public let facts: RowFacts?
    /// True if devices can receive a row with this key.
    public let isSendable: Bool

    /// True if a device can know the record. If not, its state overrides nothing, and no truth
    /// names it.
    public var isKnowable: Bool { isSendable || facts != nil }

    public init(
        address: RecordAddress, effect: Effect, facts: RowFacts?, isSendable: Bool = true
    ) {
        self.address = address
        self.effect = effect
        self.facts = facts
        self.isSendable = isSendable
    }
}
