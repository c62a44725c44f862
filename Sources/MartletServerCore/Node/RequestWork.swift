import MartletModel
import MartletProtocol

/// What was decided on one request.
struct RequestWork {
    /// Why nothing of the request was looked at.
    var problem: Problem?
    var device: Int64 = 0
    /// Sets accepted now.
    var accepted: [(entry: LogEntry, set: ChangeSet)] = []
    /// Revisions of sets accepted before.
    var repeats: [Revision] = []
    /// Refused sets, in order: as sent, with the refusal beside.
    var refused: [ChangeSet] = []
    var refusals: [Refusal] = []
    /// The refused sets as they go down.
    var refusedSets: [ChangeSet] = []
    /// Whether refused sets are missing, because their true rows have no room in this answer.
    var hasPostponed = false
    /// Identifiers of sets that were decided on here, for sets that depend on them: a refusal
    /// without a device is not kept anywhere else.
    var decided: Set<String> = []
    /// Whether a set was refused that may yet be accepted.
    var hasRetryable = false
    /// The work of the sets so far, in steps of SQLite's machine, about.
    var steps = 0

    /// Records that refused sets would have created, under keys that others may have, by type; with
    /// whether the set may yet be accepted.
    private var uncreated: [String: [RecordID: Bool]] = [:]
    /// The sets of which that was noted, in order.
    private var followed: [(place: Int, set: ChangeSet, refusal: Refusal?)] = []

    var acceptedCount: Int { accepted.count }

    /// Notes which new records there are for the sets behind one.
    /// - Parameters:
    ///   - refusal: Why the set is refused; nil if, as far as is known, it is not.
    ///   - place: Its place among all sets.
    mutating func follow(_ set: ChangeSet, _ refusal: Refusal?, at place: Int) {
        guard set.types.contains(where: { $0.create.contains { !$0.isTemporary } }) else { return }
        followed.append((place, set, refusal))
        note(set, refusal)
    }

    /// Forgets what was noted of sets from a place on: they are judged once more.
    mutating func forgetFollowed(from place: Int) {
        guard let last = followed.last, last.place >= place else { return }
        followed.removeAll { $0.place >= place }
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

    /// Returns why a set is refused that was made on top of a refused one; nil if it was not. Another
    /// record may have the key of the one that its author means.
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
}
