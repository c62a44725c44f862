internal import MartletModel
internal import MartletProtocol
internal import MartletStore

/// Applies differences slice by slice.
extension DeviceNode {
    static var isTakenOver: SyncError {
        SyncError(.busy, "Another process took over the exchange.")
    }

    /// Stages an answer that has to be applied together with staged differences, if there are
    /// enough differences to be worth slices. The rest of the answer waits for a later request.
    /// - Returns: False if the answer no longer fits the file.
    func stageForSlices(_ pending: inout PendingAnswer, now: Int64) throws -> Bool {
        let answer = pending.answer
        let differences = answer.changeSets.filter(\.isDifference)
        let isMany = differences.reduce(0) { $0 + $1.recordCount } > options.sliceRecords
        let staged = try store.standing.staged
        let isLast = staged != nil && staged?.snapshot == nil
        if isMany || isLast && !differences.isEmpty {
            let isStaged = try store.stage(
                answer.changeSets, reaching: answer.maxRevision, more: answer.more,
                lineage: answer.lineage, dataSet: answer.dataSet, owner: owner,
                inPiecesOf: options.sliceRecords, now: now)
            guard isStaged else { return false }
            store.asked.cursor = answer.maxRevision
            pending.answer.changeSets.removeAll { $0.retryAfter == nil }
        }
        pending.slices = try store.differenceSlices(pending.answer)
        return true
    }

    /// Applies the next slice; after the last one, everything that is left, with the new revision.
    func applySlice(_ pending: PendingAnswer, _ exchange: Int, now: Int64) -> [Action] {
        guard var slices = pending.slices else { return [] }
        do {
            guard let report = try store.applySlice(&slices, owner: owner, now: now) else {
                return pause(Self.isTakenOver)
            }
            var pending = pending
            pending.slices = slices.waiting.isEmpty ? nil : slices
            state = .applying(exchange: exchange, answer: pending)
            return [
                .notify(.applied(report, revision: try store.revision)),
                .applyNext(exchange: exchange),
            ]
        } catch {
            return failedToApply(storageError(error), now: now)
        }
    }
}
