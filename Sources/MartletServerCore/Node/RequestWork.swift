import MartletModel
import MartletProtocol

/// The decisions on one request.
struct RequestWork {
    /// The reason why no set of the request was decided.
    var problem: Problem?
    var device: Int64 = 0
    /// The view that the sender is given; nil if there are no policies.
    var views: ViewChange?
    /// The storage's note about the device after the batch; nil if there is no device.
    var noted: DeviceNote?
    /// True if the node knows which changes concern the sender's view.
    var isViewTracked = false
    /// The sets that were accepted now.
    var accepted: [(entry: LogEntry, set: ChangeSet)] = []
    /// The revisions of sets that were accepted before.
    var repeats: [Revision] = []
    /// The refused sets as sent, in order, with the refusals in parallel.
    var refused: [ChangeSet] = []
    var refusals: [Refusal] = []
    /// The refused sets as the answer has them.
    var refusedSets: [ChangeSet] = []
    /// True if refused sets are missing, because their true rows have no room in this answer.
    var hasPostponed = false
    /// The identifiers of sets that were decided here, for sets that depend on them. The refusal of
    /// a set without a device is stored nowhere else.
    var decided: Set<String> = []
    /// True if a set was refused that may yet be accepted.
    var hasRetryable = false
    /// The approximate work of the sets so far, in steps of SQLite's virtual machine.
    var steps = 0

    /// The records that refused sets would have created under keys of their own, by type, and
    /// whether the set may yet be accepted. Other records may have these keys.
    private var uncreated: [String: [RecordID: Bool]] = [:]
    /// The sets whose new records were noted, in order.
    private var followed: [(position: Int, set: ChangeSet, refusal: Refusal?)] = []

    var acceptedCount: Int { accepted.count }

    /// Notes the new records of a set, for the sets behind it.
    ///
    /// - Parameters:
    ///   - refusal: The refusal of the set; nil if it is not refused as far as known.
    ///   - position: The position among all sets.
    mutating func follow(_ set: ChangeSet, _ refusal: Refusal?, at position: Int) {
        guard set.types.contains(where: { $0.create.contains { !$0.isTemporary } }) else { return }
        followed.append((position, set, refusal))
        note(set, refusal)
    }

    /// Forgets the notes about sets from a position on, because they are judged again.
    mutating func forgetFollowed(from position: Int) {
        guard let last = followed.last, last.position >= position else { return }
        followed.removeAll { $0.position >= position }
        uncreated = [:]
        for earlier in followed { note(earlier.set, earlier.refusal) }
    }

    private mutating func note(_ set: ChangeSet, _ refusal: Refusal?) {
        if refusal == nil, uncreated.isEmpty { return }
        for changes in set.types {
            for id in changes.create where !id.isTemporary {
                uncreated[changes.name, default: [:]][id] = refusal.map(\.isRetryable)
            }
        }
    }

    /// Returns the refusal of a set that was made on top of a refused one; nil if it was not.
    /// Another record may have the key of the record that its author means.
    func refusal(onTopOf set: ChangeSet) -> Refusal? {
        guard !uncreated.isEmpty else { return nil }
        for changes in set.types {
            guard let keys = uncreated[changes.name], !keys.isEmpty else { continue }
            for id in changes.update + changes.delete {
                guard let isRetryable = keys[id] else { continue }
                return Refusal(
                    .dependency,
                    "it was made on top of a new record of “\(changes.name)” that was refused",
                    retryAfter: isRetryable ? Acceptance.dependencyWaitSeconds : nil)
            }
        }
        return nil
    }

    mutating func refuse(_ set: ChangeSet, _ refusal: Refusal) {
        refused.append(set)
        refusals.append(refusal)
        if refusal.isRetryable {
            hasRetryable = true
        } else if let identifier = set.identifier {
            decided.insert(identifier)
        }
    }

    /// Returns the position among the refused sets of one that may yet be accepted; nil if it is none of these.
    func putOffPosition(of identifier: String) -> Int? {
        refused.indices.first {
            refused[$0].identifier == identifier && refusals[$0].isRetryable
        }
    }

    /// Removes a refusal, because the set has another verdict by now.
    mutating func takeBack(at position: Int) {
        refused.remove(at: position)
        refusals.remove(at: position)
    }
}
