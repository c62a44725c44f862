internal import MartletModel
internal import MartletProtocol

/// The progress of a device: the revision that its tables have, the data that is staged, and the
/// data that is still to be fetched.
///
/// A transaction reads it once, asks it, changes it, and writes it once.
///
/// A device can be seeding, refetching and rejoining at the same time: it may begin with a snapshot
/// that is older than the revision that it had, and find then that the server was restored. A
/// device that does none of this, and has nothing staged, is in step.
struct Standing: Hashable, Sendable {
    /// The newest revision whose entries are all applied.
    var revision: Revision = 0
    /// The hash of the log at `revision`, as the server named it; nil if it did not.
    var lineage: String?
    /// The data set that the device belongs to; nil before the first answer.
    var dataSet: String?
    /// The data to apply together with that of the next answers; nil if there is none.
    var staged: Staged?
    /// The revision up to which rows in the tables may be newer than `revision`; nil if none is.
    /// While it is set, the last transaction of a difference is still to come.
    var slicedUpTo: Revision?
    /// The missing parts of the snapshot that the device began with; nil if it is not seeding.
    var missing: MissingParts?
    /// Set from the emptying of the file until the device has reached its former revision.
    var refetching: Refetching?
    /// The history in which the queued sets were made, from the emptying of the file until the
    /// server has confirmed that it is its own.
    var former: HistoryMark?
    /// The end of an answer, while the tables have only its first entries, up to `revision`.
    var partOf: HistoryMark?
    /// The newest revision that both histories are known to share, while the device rejoins a
    /// server that has another history; nil otherwise.
    var rejoining: Revision?
    /// Whether the device rejoins because its user may see other records than it has.
    var isForView = false
    /// The first page of the file that may still have bytes of records which the user may not see any
    /// more: 0 if full-text indexes may have their words; nil if nothing has.
    var tracesFrom: Int64?
    /// Why they cannot be removed, and what to do; nil if the device has not tried in vain.
    var tracesFault: String?
    /// Why the tables refuse remote change, and what to do; nil if they took the last one.
    var applyFault: String?
    /// The number of the user's view, as the server named it last: 0 if the user sees everything; nil
    /// if the server has no policies.
    var view: Int64?
    /// The records that left the user's view and were removed, since the file exists.
    var removed = RangeHash()
    /// Whether the server has yet to be told of the view and of what was removed.
    var owesReceipt = false
    /// The fingerprint of the rules that concern the user; nil if there are none.
    var rules: String?
    /// The number of confirmed sets that were queued again, to be sent after rejoining.
    var queuedAgain: Int64 = 0

    /// Answers that are in the file and not in the tables.
    struct Staged: Hashable, Sendable {
        /// The position at which fetching continues.
        var revision: Revision
        var lineage: String?
        /// Whether the newest answer ended within a difference. The rest of the difference has to
        /// be rows too: an entry may change part of a record whose other changes follow later.
        var isCut = false
        var base = Base.tables(slicedPart: 0)

        /// The data that the staged answers change.
        enum Base: Hashable, Sendable {
            /// The app's tables. Pieces up to the one with this key are applied.
            case tables(slicedPart: Int64)
            /// A snapshot, which replaces all rows.
            case snapshot(SnapshotManifest)
        }

        /// The manifest of the staged snapshot; nil if there is none.
        var snapshot: SnapshotManifest? {
            if case .snapshot(let manifest) = base { manifest } else { nil }
        }
    }

    struct Refetching: Hashable, Sendable {
        /// The revision that the device had when its file was emptied.
        var goal: Revision
        /// Whether the server has confirmed the former history, before anything was fetched.
        var isConfirmed = false
    }

    /// The point from which a request asked to continue. Its answer does not fit a file that has
    /// another one by now, for example because the file was emptied.
    struct Asked {
        /// The revision that the request named.
        var named: Revision = 0
        /// The revision of `cursor` at that time.
        var cursor: Revision = 0
        /// The value of `rejoining` at that time.
        var rejoining: Revision?
        /// Whether it had a receipt of what was removed, and nothing was removed since.
        var hasReceipt = false
        /// Whether its answer has the records of a view.
        var showsPart = false
    }
}

// MARK: - Conditions

extension Standing {
    /// The position at which fetching continues: after the staged changes if there are any, else at
    /// the device's revision.
    var cursor: (revision: Revision, lineage: String?) {
        if let staged { return (staged.revision, staged.lineage) }
        return rejoining == nil ? (revision, lineage) : (0, nil)
    }

    /// Whether data is under way that leads to a true state only once all of it is here.
    var isIncomplete: Bool { staged != nil || missing != nil || refetching != nil }

    /// Whether bytes of records that the user may not see any more may still be in the file.
    var hasTraces: Bool { tracesFrom != nil }

    /// Whether every confirmed row is as it was at `revision`.
    var isAtOneRevision: Bool { !isIncomplete && slicedUpTo == nil }

    /// Whether the device has to ask for rows in place of entries. An entry holds only the changed
    /// attributes of a record, and the record may not be here yet.
    var needsRows: Bool {
        staged?.isCut == true || staged?.snapshot != nil
            || missing != nil || rejoining != nil || slicedUpTo != nil
    }

    /// Whether a snapshot may take the place of everything that the device would fetch.
    var canBeginWithSnapshot: Bool {
        cursor.revision == 0 && rejoining == nil && historyToConfirm == nil && missing == nil
            && slicedUpTo == nil && (refetching == nil || view ?? 0 == 0)
    }

    /// The missing parts that can be fetched and installed; nil if there are none. A part newer
    /// than the device waits for the exchange that brings it there.
    var installable: PendingSnapshot? {
        missing?.snapshot.flatMap { revision >= $0.manifest.revision ? $0 : nil }
    }

    /// The history that the next request has to ask for, before everything is fetched again and
    /// once more when all is here: whether the server's history is still the device's former one.
    /// Without this check the server could take queued edits for edits of other records.
    var historyToConfirm: HistoryMark? {
        // A device that rejoins a restored server knows that the history is another one.
        rejoining != nil || refetching?.isConfirmed == true ? nil : former
    }

    /// Whether the tables have rows of another view that a request does not tell of, because the device has
    /// not reached a revision since they were applied. Only rejoining removes them.
    var mustReplaceRows: Bool { isForView && revision == 0 && slicedUpTo != nil }

    /// Whether rows that are newer than the revision are in the tables. If the server's history is another
    /// one, or the user may not see them any more, only rejoining removes them.
    var hasAppliedSlices: Bool { slicedUpTo != nil && !mustReplaceRows }

    /// The newest revision of the history that the queued sets were made in.
    var newestOfHistory: Revision { former?.revision ?? refetching?.goal ?? revision }

    /// The newest revision of that history whose hash is known; nil if there is none. It is newer than the
    /// tables if they have only the first entries of an answer.
    var newestMark: HistoryMark? {
        former ?? lineage.map { HistoryMark(revision: revision, lineage: $0) } ?? partOf
    }

    /// The first revision after everything that is known of that history.
    var endOfHistory: Revision { max(newestOfHistory, newestMark?.revision ?? 0) + 1 }

    /// The revision that the queued sets may have seen, while the device fetches everything again; 0 if
    /// it does not.
    private var goal: Revision { rejoining ?? refetching?.goal ?? 0 }

    /// Whether the next request may have change sets. A set has seen revisions that the device has
    /// again only once everything is fetched.
    var maySend: Bool { historyToConfirm == nil && cursor.revision >= goal }

    /// Returns a request for what the device needs next, without change sets.
    /// - Parameter wantsRows: Whether to ask for rows even if entries would do.
    func request(wantsRows: Bool) -> SyncRequest {
        let history = historyToConfirm
        var request = SyncRequest(maxRevision: history?.revision ?? cursor.revision)
        request.lineage = history?.lineage ?? cursor.lineage
        if history == nil, staged == nil, rejoining == nil { request.partOf = partOf }
        request.goal = request.maxRevision < goal ? goal : nil
        request.wantsRows = history == nil && (wantsRows || needsRows)
        return request
    }

    /// The confirmation that nothing is left of records which the user may not see; nil if there is
    /// none to give now.
    var receipt: PurgeReceipt? {
        guard owesReceipt, !hasTraces, isAtOneRevision, rejoining == nil, historyToConfirm == nil
        else { return nil }
        return PurgeReceipt(view: view ?? 0, revision: revision, removed: removed)
    }

    /// Returns whether an answer cannot lead to the device's former revision, because the server's
    /// log ends before it.
    func endsTooEarly(_ answer: SyncAnswer) -> Bool {
        !answer.more && answer.maxRevision < goal
    }

    /// Returns whether an answer was made for the state that the file is in.
    /// - Parameter isOnStaged: Whether staged data is applied together with the sets.
    func fits(_ sets: ArraySlice<ChangeSet>, answering asked: Asked, isOnStaged: Bool) -> Bool {
        if asked.rejoining != nil {
            return rejoining == asked.rejoining && cursor.revision == asked.cursor
        }
        if isOnStaged { return cursor.revision == asked.cursor }
        // A difference would restore rows that have changed since.
        if sets.contains(where: \.isDifference) { return revision == asked.cursor }
        // A revision goes back only if the file was emptied since.
        return revision >= asked.cursor
    }

    /// Returns the outcome of a batch of the stream that is not applied; nil if the batch fits.
    func outcome(withoutApplying batch: DeltaBatch) -> BatchOutcome? {
        guard !batch.isBehind else {
            return batch.goesOn ?? .max <= revision ? .old(deltas: 0) : .needsExchange
        }
        guard batch.nextVersion > revision else { return .old(deltas: batch.deltas.count) }
        let isWhole =
            batch.from.map { $0 <= revision }
            ?? (batch.deltas.last?.version == batch.nextVersion)
        let isInStep = isAtOneRevision && rejoining == nil
        return isWhole && !batch.isDifference && isInStep ? nil : .needsExchange
    }
}

// MARK: - Changes

extension Standing {
    /// Notes that a snapshot is staged, in place of everything that was.
    mutating func stage(_ snapshot: SnapshotManifest) {
        staged = Staged(
            revision: snapshot.revision, lineage: snapshot.lineage, base: .snapshot(snapshot))
    }

    /// Notes that an answer is staged after everything that is.
    /// - Parameter isCut: Whether it ended within a difference.
    mutating func stage(upTo reached: Revision, lineage: String?, isCut: Bool) {
        staged = Staged(
            revision: reached, lineage: lineage, isCut: isCut,
            base: staged?.base ?? .tables(slicedPart: 0))
    }

    /// Notes that a staged piece of a difference is applied.
    mutating func apply(slice part: Int64, of revision: Revision?) {
        staged?.base = .tables(slicedPart: part)
        slicedUpTo = max(slicedUpTo ?? 0, revision ?? 0)
    }

    /// Notes that the tables have everything up to a revision; they never go back.
    /// - Parameters:
    ///   - lineage: The hash of the log there, if the server named it.
    ///   - end: The end of the answer, if this was not the last of its entries.
    ///   - isWhole: Whether a snapshot took the place of all rows.
    mutating func reach(
        _ reached: Revision, lineage: String?, before end: HistoryMark? = nil,
        dataSet: String? = nil, isWhole: Bool
    ) {
        if reached > revision || reached == revision && lineage != nil {
            self.lineage = lineage
            partOf = lineage == nil ? end ?? partOf : nil
        }
        self.dataSet = dataSet ?? self.dataSet
        revision = max(revision, reached)
        if let goal = refetching?.goal, reached >= goal { refetching = nil }
        // Since then the device has asked only for rows, so the state is complete.
        if isWhole || reached >= slicedUpTo ?? 0 { slicedUpTo = nil }
    }

    /// Notes that the tables have the state of the server that the device rejoined.
    mutating func rejoin(at reached: Revision, lineage: String?, dataSet: String? = nil) {
        self = Standing(
            revision: reached, lineage: lineage, dataSet: dataSet ?? self.dataSet, staged: staged,
            tracesFrom: tracesFrom, view: view, removed: removed, owesReceipt: owesReceipt)
    }

    /// Notes that the tables are empty, and that everything has to be fetched again.
    /// - Parameter mark: The newest revision whose hash the device remembers.
    mutating func empty(mark: HistoryMark?) {
        // A new device may have shown a part of its first rows.
        let reached = revision > 0 ? revision : slicedUpTo ?? 0
        if reached > 0, refetching == nil {
            refetching = Refetching(goal: reached)
            // The file may have been emptied before, without a confirmation since.
            former = newestMark ?? mark
        }
        refetching?.isConfirmed = false
        (revision, lineage, partOf) = (0, nil, nil)
        (slicedUpTo, missing) = (nil, nil)
        // To the server, the device is an older copy until it has everything again.
        if view ?? 0 != 0 { owesReceipt = true }
    }

    /// Notes that the server's history is the former one. If nothing is to be fetched again, there
    /// is nothing left to ask.
    mutating func confirmHistory() {
        if refetching == nil { former = nil } else { refetching?.isConfirmed = true }
    }
}
