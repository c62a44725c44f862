import MartletModel
import MartletProtocol

extension BatchDecision {
    /// The approximate most records that the sets of one request to the storage name. One set is
    /// always requested.
    private static let recordsAtOnce = 4_096

    /// The position of a refused set whose truth is wanted.
    private struct RefusedPosition {
        let request: Int
        /// The set's position among the refused ones of its request.
        let set: Int
    }

    /// Reads the present rows of the records in refused sets, at the end of the batch. A truth read
    /// earlier could bring back a record that a later set of the request has deleted.
    ///
    /// If the true rows of a set have no room in the answer, the answer leaves the set out, and its
    /// verdict arrives when the device sends the set again. So a verdict always arrives with its
    /// rows.
    func addTruths(
        to works: inout [RequestWork?], of requests: [AdmittedRequest]
    ) throws(StorageFault) {
        let truths = try truths(for: works, of: requests)
        for index in requests.indices {
            guard var work = works[index], !work.refused.isEmpty else { continue }
            for (position, (set, refusal)) in zip(work.refused, work.refusals).enumerated() {
                let truth = truths[index][position]
                guard truth != nil || refusal.isRetryable else {
                    work.hasPostponed = true
                    continue
                }
                var down = ChangeSet(types: truth?.types ?? [])
                down.identifier = set.identifier
                down.sequence = set.sequence
                down.conflict = true
                down.reason = refusal.reason
                down.message = refusal.message
                down.retryAfter = refusal.retryAfter
                if truth?.isCut == true {
                    down.isTruthCut = true
                    down.message = refusal.message + Self.cutWords
                }
                work.refusedSets.append(down)
            }
            works[index] = work
        }
    }

    private static let cutWords = """
        ; the server's rows of these records are more than an answer holds, and some are not listed
        """

    /// Returns the true rows of the finally refused sets of each request, by index among its
    /// refused sets: as many as its answer and the batch may hold.
    private func truths(
        for works: [RequestWork?], of requests: [AdmittedRequest]
    ) throws(StorageFault) -> [[Int: SetTruth]] {
        var found = [[Int: SetTruth]](repeating: [:], count: works.count)
        var rooms = [Int](repeating: Limits.answerBytes, count: works.count)
        var waiting = Self.refusedPositions(in: works)[...]
        var room = Limits.truthBatchBytes
        let rights = requests.map { request in
            policies.map { RowRights($0, of: request.principal, now: now) }
        }
        while room > 0, !waiting.isEmpty {
            let asked = next(&waiting, works, rooms)
            guard !asked.isEmpty else { break }
            let truths = try storage.truths(
                of: asked.map { position in
                    CurrentRowsRequest(
                        device: works[position.request]?.device ?? 0,
                        set: works[position.request]?.refused[position.set] ?? ChangeSet(),
                        rights: rights[position.request])
                }, setBytes: Limits.answerBytes, maxBytes: room)
            guard !truths.isEmpty else {
                throw StorageFault(.failed, "the storage did not tell a truth")
            }
            for (position, truth) in zip(asked, truths) {
                room -= truth.byteCount
                guard rooms[position.request] > 0 else { continue }
                let isFirst = found[position.request].isEmpty
                if isFirst || truth.byteCount <= rooms[position.request] {
                    found[position.request][position.set] = truth
                    rooms[position.request] -= truth.byteCount
                } else {
                    // The sets after it also get their verdicts later.
                    rooms[position.request] = 0
                }
            }
            waiting = asked[truths.count...] + waiting
        }
        return found
    }

    private static func refusedPositions(in works: [RequestWork?]) -> [RefusedPosition] {
        var positions: [RefusedPosition] = []
        for (index, work) in works.enumerated() {
            for (position, refusal) in (work?.refusals ?? []).enumerated()
            where !refusal.isRetryable {
                positions.append(RefusedPosition(request: index, set: position))
            }
        }
        return positions
    }

    /// Removes and returns the next sets of requests that have room, up to a number of records.
    private func next(
        _ waiting: inout ArraySlice<RefusedPosition>, _ works: [RequestWork?], _ rooms: [Int]
    ) -> [RefusedPosition] {
        var asked: [RefusedPosition] = []
        var records = 0
        while records < Self.recordsAtOnce, let position = waiting.popFirst() {
            guard rooms[position.request] > 0, let work = works[position.request] else { continue }
            asked.append(position)
            records += 1 + work.refused[position.set].recordCount
        }
        return asked
    }
}
