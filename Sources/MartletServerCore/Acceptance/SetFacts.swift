public import MartletModel
internal import MartletProtocol

/// What the server knows that bears on one change set, at one moment.
public struct SetFacts: Sendable {
    /// The earlier verdict on the set, or on another one that bears its identifier.
    public var decided: DecidedSet?
    /// The set that its device numbered so before; nil where the number is new, or there is none.
    public var used: UsedSequence?
    /// Whether the set named as `dependencyIdentifier` has been decided, either way.
    public var isDependencyDecided = false
    /// The facts of the records the set names, by permanent id; a record that never existed is
    /// absent.
    public var rows: [RecordAddress: RowFacts] = [:]
    /// The permanent ids of `SetPlan.earlierTemporaries`, as far as the device's id map has them.
    public var permanent: [RecordAddress: RecordID] = [:]
    /// Temporary ids the set creates that an earlier set of the device has created already.
    public var usedTemporaries: [RecordAddress] = []
    /// What ON DELETE actions would do to records beside those the set deletes.
    public var affected: [AffectedRow] = []
    /// Whether the search for the facts was given up because it took too long.
    public var isExcessive = false
    /// Why the database cannot hold the set, whatever else is known of it.
    public var refusal: Refusal?

    public init() {}

    /// Clears the facts of earlier records under the keys that the set creates, once the set is
    /// judged acceptable. Its author knew all of it, so later edits of the new record override
    /// nobody.
    public mutating func beginAnew(with plan: SetPlan) {
        guard !rows.isEmpty else { return }
        for create in plan.creates { rows[create.address] = nil }
    }
}

/// A set number that is taken.
public struct UsedSequence: Hashable, Sendable {
    public let identifier: String?
    /// SHA-256 of the set's bytes.
    public let content: [UInt8]

    public init(identifier: String?, content: [UInt8]) {
        self.identifier = identifier
        self.content = content
    }
}

/// A verdict given before.
public struct DecidedSet: Hashable, Sendable {
    /// How a set was decided.
    public enum Verdict: Hashable, Sendable {
        /// Accepted, as this revision.
        case accepted(Revision)
        case refused(Refusal)
    }

    public let verdict: Verdict
    /// Whether the set's bytes are the ones then decided on.
    public let isSameContent: Bool
    /// Whether it came from the same principal, as far as that is known.
    public let isSamePrincipal: Bool

    public init(verdict: Verdict, isSameContent: Bool, isSamePrincipal: Bool) {
        self.verdict = verdict
        self.isSameContent = isSameContent
        self.isSamePrincipal = isSamePrincipal
    }
}

/// A record an ON DELETE action changes.
public struct AffectedRow: Hashable, Sendable {
    /// What happens to the record.
    public enum Effect: Hashable, Sendable {
        /// CASCADE.
        case removed
        /// SET NULL or SET DEFAULT of the attribute that held the id.
        case changed(attribute: String, held: RecordID)
    }

    public let address: RecordAddress
    public let effect: Effect
    /// Nil where the server keeps none: the row was written past Martlet.
    public let facts: RowFacts?
    /// Whether devices can be sent a row with this key.
    public let isSendable: Bool

    /// Whether a device can know the record. If not, its state overrides nobody, and no truth names it.
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
