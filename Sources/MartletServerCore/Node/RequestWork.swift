import MartletCore
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

    var acceptedCount: Int { accepted.count }

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
