internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Rejoins a server that has another history: it was restored from a backup, and may have accepted
/// other changes since.
///
/// The device finds the newest revision that both share, fetches the server's state alongside its
/// own tables, and takes it over in one transaction, under its own work. It never does this with
/// another data set: a server refuses another data set before it compares histories.
extension DeviceStore {
    /// Returns a revision between two whose hash the device remembers: its newest one, or the middle
    /// one of the others; nil if there is none. With the newest one, a device that has the server's
    /// history is done, and not every newest one is stored among the others.
    func checkpoint(between low: Revision, and high: Revision) throws -> HistoryMark? {
        if let newest = try standing.newestMark, low < newest.revision, newest.revision < high {
            return newest
        }
        let range = "FROM martlet_lineages WHERE revision > ?1 AND revision < ?2"
        let find = try applying.connection.statement(
            """
            SELECT revision, lineage \(range) ORDER BY revision
            LIMIT 1 OFFSET (SELECT count(*) / 2 \(range))
            """)
        find.bind(1, integer: low)
        find.bind(2, integer: high)
        defer { find.reset() }
        return try find.step()
            ? HistoryMark(revision: find.integer(0), lineage: find.text(1)) : nil
    }

    /// Builds a request that asks only whether the server's history has a revision.
    func gatherProbe(
        at checkpoint: HistoryMark, owner: String,
        isGone: (_ owner: String) -> Bool, lease: Int64, name: String, now: Int64
    ) throws -> Gathered {
        try inApplyingTransaction {
            if let until = try leaseOfOther(than: owner, isGone: isGone, now: now) {
                return .leased(until: until)
            }
            try takeLease(owner: owner, until: now + lease)
            var request = SyncRequest(maxRevision: checkpoint.revision)
            asked.named = request.maxRevision
            request.clientID = try clientID
            request.protocolVersion = WireVersion.current
            request.dataSet = try dataSet
            request.lineage = checkpoint.lineage
            request.request = name
            request.schema = applying.schema.fingerprint
            return .request(
                try SyncCoder.requestHead(request) + SyncCoder.tail, changeSets: [])
        }
    }

    /// Begins to fetch the server's state.
    /// - Parameters:
    ///   - common: The newest revision that both histories are known to share.
    ///   - isForView: Whether the reason is that the user may see other records than the device has.
    /// - Returns: False if another process has taken over meanwhile.
    func beginRejoining(
        upTo common: Revision, isForView: Bool = false, owner: String, now: Int64
    ) throws -> Bool {
        try changeStanding { standing in
            guard try leaseOfOther(than: owner, now: now) == nil else { return false }
            try clearStaged(&standing)
            standing.rejoining = common
            standing.isForView = isForView
            let count = try ConfirmedSets(store: applying, mostBytes: mostKeptBytes).queueAgain(
                after: common)
            standing.queuedAgain += Int64(count)
            return true
        }
    }

    /// Stops rejoining, because the server may have been restored again since.
    func stopRejoining() throws {
        try changeStanding { standing in
            try clearStaged(&standing)
            standing.rejoining = nil
            standing.isForView = false
        }
    }

    /// Takes the server's state over, in the caller's transaction. The fetched rows replace all
    /// rows. On top of them it redoes the own sets whose basis both histories share, and then those
    /// of the lost history, each judged by its images.
    func rejoin(
        _ sets: ArraySlice<ChangeSet>, upTo common: Revision, from before: Standing,
        on sources: Rebase.DataSources, reaching: Revision, lineage: String?, dataSet: String?,
        now: Int64
    ) throws -> RebaseReport {
        try closeExternalCapture(applying, now: now)
        try applying.setCapture(false)
        // This is not done earlier, because a device that keeps its history still needs the parts.
        if before.missing != nil { try PendingParts(store: applying).forgetPassed() }
        // Nobody says whether a record is lost or hidden, so a hidden one leaves no value either way.
        // His rights may have changed with the history, too.
        let seesPart = before.view ?? 0 != 0 || asked.showsPart
        let present = before.isForView || seesPart ? try Purge(store: applying).confirmed() : []
        var work = LostWork(
            store: applying, common: common, isForView: before.isForView, seesPart: seesPart,
            now: now, mostKeptBytes: mostKeptBytes)
        try work.takeOut()
        try SnapshotRows.makeRoom(in: applying)
        var rebase = Rebase(
            store: applying, registry: registry, now: now, notesOwn: true, missing: nil,
            mostKeptBytes: mostKeptBytes)
        rebase.isForView = before.isForView
        // A record that a restored server has lost may get another one's id.
        rebase.seesPart = before.isForView
        try rebase.apply(sets, after: 0, on: sources)
        var after = before
        after.rejoin(at: reaching, lineage: lineage, dataSet: dataSet)
        after.missing = rebase.missing
        if !sources.isEmpty { try clearStaged(&after) }
        var report = rebase.report
        try work.putBack(on: rebase, &report)
        if before.isForView || seesPart {
            try purge(nil, had: present, &after)
        } else {
            try purge(rebase.hidden, had: rebase.hidden, &after)
        }
        try after.write(to: applying, over: before)
        report.rejoined = Rejoined(
            common: common, revision: reaching,
            sentAgain: Int(before.queuedAgain) + work.sentAgain,
            parked: report.receipts.count { $0.outcome == .refused })
        report.changedTypes.formUnion(applying.schema.types.map(\.name))
        try applying.connection.run("DELETE FROM martlet_lineages WHERE revision > \(common)")
        try applying.setCapture(true)
        return report
    }
}
