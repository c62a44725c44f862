package import MartletModel
internal import MartletProtocol

/// The server's facts that bear on one change set, at one moment.
package struct SetFacts: Sendable {
    /// The earlier verdict on the set, or on another one with its identifier.
    package var decided: DecidedSet?
    /// The set to which its device gave the same number before; nil if the number is new or there
    /// is none.
    package var used: UsedSequence?
    /// True if the set named as `dependencyIdentifier` has been decided, either way.
    package var isDependencyDecided = false
    /// The facts of the records that the set names, by permanent id. A record that never existed is
    /// absent.
    package var rows: [RecordAddress: RowFacts] = [:]
    /// The records that the set creates with the keys of deleted ones, once it is judged acceptable.
    package private(set) var remade: Set<RecordAddress> = []
    /// The permanent ids of `SetPlan.earlierTemporaries`, if the device's id map has them.
    package var permanent: [RecordAddress: RecordID] = [:]
    /// The temporary ids that the set creates, although an earlier set of the device has created
    /// them.
    package var usedTemporaries: [RecordAddress] = []
    /// The effects of ON DELETE actions on records other than those that the set deletes.
    package var affected: [AffectedRow] = []
    /// True if the search for the facts was given up because it took too long.
    package var isExcessive = false
    /// The reason why the database cannot hold the set, whatever the other facts are.
    package var refusal: Refusal?

    package init() {}

    /// Clears the facts of earlier records with the keys that the set creates, once the set is
    /// judged acceptable. Its author knew their states, so later edits of the new record override
    /// no other author.
    package mutating func clearEarlierRecords(with plan: SetPlan) {
        guard !rows.isEmpty else { return }
        for create in plan.creates where rows.removeValue(forKey: create.address) != nil {
            remade.insert(create.address)
        }
    }
}

/// A change set whose number is taken.
package struct UsedSequence: Hashable, Sendable {
    package let identifier: String?
    /// The SHA-256 of the set's bytes.
    package let content: [UInt8]

    package init(identifier: String?, content: [UInt8]) {
        self.identifier = identifier
        self.content = content
    }
}

/// A set that was decided before: its verdict, and what tells whether it is the same set.
package struct DecidedSet: Hashable, Sendable {
    /// The outcome for a set.
    package enum Verdict: Hashable, Sendable {
        /// The set was accepted, as this revision.
        case accepted(Revision)
        case refused(Refusal)
    }

    package let verdict: Verdict
    /// True if the set has the same bytes as the decided one.
    package let isSameContent: Bool
    /// True if it came from the same principal, as far as that is known.
    package let isSamePrincipal: Bool

    package init(verdict: Verdict, isSameContent: Bool, isSamePrincipal: Bool) {
        self.verdict = verdict
        self.isSameContent = isSameContent
        self.isSamePrincipal = isSamePrincipal
    }
}

/// A record that an ON DELETE action changes.
package struct AffectedRow: Hashable, Sendable {
    /// The effect on the record.
    package enum Effect: Hashable, Sendable {
        /// CASCADE deletes the record.
        case removed
        /// SET NULL or SET DEFAULT changes the attribute that held the id.
        case changed(attribute: String, held: RecordID)
    }

    package let address: RecordAddress
    package let effect: Effect
    /// The facts; nil if the server has none because an external write made the row.
    package let facts: RowFacts?
    /// True if devices can receive a row with this key.
    package let isSendable: Bool

    /// True if a device can know the record. If not, its state overrides nothing, and no truth
    /// names it.
    package var isKnowable: Bool { isSendable || facts != nil }

    package init(
        address: RecordAddress, effect: Effect, facts: RowFacts?, isSendable: Bool = true
    ) {
        self.address = address
        self.effect = effect
        self.facts = facts
        self.isSendable = isSendable
    }
}
