import MartletCore
import MartletProtocol

extension BatchDecision {
    /// Bytes one truth may take; what goes beyond is left out.
    private static let truthBytes = 32 << 20
    /// Records that sets of one question to the storage name, about; one set is always asked about.
    private static let recordsAtOnce = 4_096

    /// A refused set whose truth is wanted.
    private struct Place {
        let request: Int
        /// Its position among the refused.
        let set: Int
    }

    /// Reads what the records of refused sets are now, at the end of the batch: a truth read
    /// earlier could bring back what a later set of the request has deleted.
    func addTruths(
        to works: inout [RequestWork?], filter: VisibilityFilter, of requests: [AdmittedRequest]
    ) throws(StorageFault) {
        let truths = try truths(for: works)
        for (index, request) in requests.enumerated() {
            guard var work = works[index], !work.refused.isEmpty else { continue }
            for (place, (set, refusal)) in zip(work.refused, work.refusals).enumerated() {
                let types = truths[index][place] ?? []
                var down = ChangeSet(types: filter.truth(types, for: request.principal))
                down.identifier = set.identifier
                down.sequence = set.sequence
                down.conflict = true
                down.reason = refusal.reason
                down.message = refusal.message
                down.retryAfter = refusal.retryAfter
                work.refusedSets.append(down)
            }
            works[index] = work
        }
    }

    /// The truths of the finally refused sets of each request, by position among its refused; as
    /// many as an answer may hold.
    private func truths(
        for works: [RequestWork?]
    ) throws(StorageFault) -> [[Int: [TypeChanges]]] {
        var found = [[Int: [TypeChanges]]](repeating: [:], count: works.count)
        var rooms = [Int](repeating: Limits.answerBytes, count: works.count)
        var places: [Place] = []
        for (index, work) in works.enumerated() {
            for (place, refusal) in (work?.refusals ?? []).enumerated() where !refusal.isRetryable {
                places.append(Place(request: index, set: place))
            }
        }
        var next = 0
        while next < places.count {
            var asked: [Place] = []
            var questions: [TruthQuestion] = []
            var records = 0
            while next < places.count, records < Self.recordsAtOnce {
                let place = places[next]
                next += 1
                guard rooms[place.request] > 0, let work = works[place.request] else { continue }
                let set = work.refused[place.set]
                asked.append(place)
                questions.append(TruthQuestion(device: work.device, set: set))
                records += set.types.reduce(1) {
                    $0 + $1.create.count + $1.update.count + $1.delete.count
                }
            }
            guard !questions.isEmpty else { continue }
            let truths = try storage.truths(of: questions, maxBytes: Self.truthBytes)
            for (place, types) in zip(asked, truths) where rooms[place.request] > 0 {
                found[place.request][place.set] = types
                rooms[place.request] -= types.reduce(0) { $0 + $1.entries.count * 200 }
            }
        }
        return found
    }
}
