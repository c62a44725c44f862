package import MartletModel
package import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Stages an answer that is applied later, together with the following ones: a snapshot, or parts
/// of a difference. Until then the tables stay as they are. After a restart, fetching continues
/// where it was.
extension DeviceStore {
    /// Returns whether any set was sent whose verdict is neither staged nor in the given answer.
    /// The device checks this before it applies a difference or a snapshot, which may contain the
    /// effects of these sets without naming them.
    /// - Parameters:
    ///   - answered: The sets whose verdicts the answer has.
    ///   - common: The newest revision of a history that the server shares; nil if it shares all.
    func hasUndecided(besides answered: Set<String>, upTo common: Revision?) throws -> Bool {
        // Sets of a history that the server does not share cannot have had effects there.
        let condition = common.map { "AND \(Outbox.isCommon(upTo: $0))" } ?? ""
        let rows = try applying.connection.statement(
            """
            SELECT identifier FROM martlet_outbox WHERE sent = 1 AND identifier NOT IN (
                SELECT identifier FROM martlet_inbox WHERE identifier IS NOT NULL) \(condition)
            """)
        defer { rows.reset() }
        while try rows.step() {
            if !answered.contains(rows.text(0)) { return true }
        }
        return false
    }

    /// Stages an answer, to be applied with those that follow.
    /// - Parameters:
    ///   - more: Whether the answer was cut.
    ///   - records: The number of records in a piece of a difference that is applied on its own. If
    ///     more records have own edits, a piece has as many as those.
    /// - Returns: False if the answer no longer fits this file; nothing was staged then.
    package func stage(
        _ sets: [ChangeSet], reaching: Revision, more: Bool, lineage: String?, dataSet: String?,
        owner: String, inPiecesOf records: Int = .max, now: Int64
    ) throws -> Bool {
        // A piece may have to remove the records with own edits and put them back, so it has at
        // least as many.
        let edited = try applying.connection.integer("SELECT count(*) FROM martlet_base") ?? 0
        let records = max(records, Int(edited))
        let pieces = try sets.filter { $0.retryAfter == nil }.flatMap { $0.pieces(of: records) }
            .map { ($0, try SyncCoder.encode($0)) }
        return try changeStanding { standing in
            guard try leaseOfOther(than: owner, now: now) == nil,
                standing.cursor.revision == asked.cursor, reaching >= asked.cursor
            else { return false }
            let inbox = Inbox(store: applying)
            for (set, body) in pieces { try inbox.add(set, body) }
            standing.stage(
                upTo: reaching, lineage: lineage,
                isCut: more && sets.contains(where: \.isDifference))
            standing.dataSet = dataSet ?? standing.dataSet
            return true
        }
    }

    /// The path of a fetched snapshot, or of the first part of one, until it is installed.
    package var snapshotPath: String { path + "-snapshot" }

    /// Sets the device to the snapshot at `snapshotPath`, from which fetching continues. Its rows
    /// are installed after the answer that follows it.
    /// - Parameter manifest: The manifest whose first part the file is.
    /// - Throws: `SnapshotError` if the file is no sound snapshot, or another one than the manifest
    ///   says; `SQLiteError`.
    package func stageSnapshot(_ manifest: SnapshotManifest) throws {
        let reader = try SnapshotReader(path: snapshotPath, vfs: vfs)
        try reader.expect(dataSet: dataSet)
        try reader.expect(manifest.parts.first?.name, of: manifest)
        try changeStanding { standing in
            try Inbox(store: applying).clear()
            standing.stage(manifest)
        }
    }

    /// Deletes the staged data, because the server no longer continues from there.
    package func discardStaged() throws {
        try changeStanding { try clearStaged(&$0) }
    }

    /// Deletes the staged data, in the caller's transaction.
    func clearStaged(_ standing: inout Standing) throws {
        try Inbox(store: applying).clear()
        standing.staged = nil
    }

    /// Runs `body` with a snapshot attached.
    func withSnapshot<Result>(
        at path: String, _ body: (SnapshotRows) throws -> Result
    ) throws -> Result {
        let snapshot = try SnapshotRows(attaching: path, vfs: vfs, to: applying)
        defer { snapshot.detach() }
        return try body(snapshot)
    }

    /// Returns the staged data as the data to apply first.
    func sources(_ staged: Standing.Staged?) throws -> Rebase.DataSources {
        var sources = Rebase.DataSources()
        guard let staged else { return sources }
        let inbox = Inbox(store: applying)
        sources.hasStaged = try !inbox.isEmpty
        sources.identifiers = try inbox.identifiers()
        sources.manifest = staged.snapshot
        return sources
    }
}

// MARK: - Deltas

/// The outcome of a batch of deltas.
package enum BatchOutcome: Sendable {
    case applied(RebaseReport, revision: Revision)
    /// The device has all of its deltas already.
    case old(deltas: Int)
    /// An earlier change is missing, or the batch says so, or it is a difference. An exchange
    /// fetches what is needed.
    case needsExchange
}

extension DeviceStore {
    /// Applies a batch of deltas and the version it leads to, in one transaction.
    ///
    /// Deltas at or below the device's revision are skipped. A batch that ends at or below it
    /// changes nothing. A batch that starts after the device's revision is not applied, nor is one
    /// that names no start and has no delta at its end.
    /// - Throws: `SyncError` `.wrongDataSet` for a batch of another data set; `StoreError`
    ///   `.inconsistent` for one that cannot be applied, naming the delta; `SQLiteError`. Nothing
    ///   was applied then.
    package func apply(_ batch: DeltaBatch, now: Int64) throws -> BatchOutcome {
        try inMendingTransaction {
            var standing = try standing
            let own = standing.dataSet ?? expectedDataSet
            if let own, let other = batch.dataSet, own != other {
                throw SyncError(
                    .wrongDataSet,
                    "The stream is of another data set than this file belongs to. Check the"
                        + " server's address and the token.")
            }
            // A cache may answer with another data set's batch. The answer of an exchange repeats
            // the name of its request, so an exchange tells the device to which data set it
            // belongs.
            guard own != nil || batch.dataSet == nil else { return .needsExchange }
            if let outcome = standing.outcome(withoutApplying: batch) {
                if case .old(let deltas) = outcome { countPassedOver(deltas) }
                return outcome
            }
            let current = standing.revision
            let sets = try batch.changeSets(after: current, schema: applying.schema)
            var sources = Rebase.DataSources()
            sources.isLenient = batch.from == nil
            var report = try reconcile(
                sets[...], from: &standing, on: sources, reaching: batch.nextVersion,
                lineage: batch.lineage, dataSet: batch.dataSet, now: now)
            let passedOver = batch.deltas.count { $0.version <= current }
            countPassedOver(passedOver)
            report.passedOver += passedOver
            // This is often enough to find out later how far back a history is shared.
            if batch.lineage != nil, batch.nextVersion >> 6 != current >> 6 {
                try Outbox(store: applying).markLineage()
            }
            observer?.applyingWillCommit(report)
            return .applied(report, revision: batch.nextVersion)
        }
    }

    /// Returns the values of other devices for which the tables have no place, by type.
    package func keptAside() throws -> [KeptAside] { try KeptAsideTable(store: applying).list() }

    /// The number of records with such values.
    package var keptAsideCount: Int {
        get throws {
            Int(try applying.connection.integer("SELECT count(*) FROM martlet_aside") ?? 0)
        }
    }

    /// The number of other devices' records that this device's tables refuse.
    package var quarantinedCount: Int {
        get throws {
            Int(try applying.connection.integer("SELECT count(*) FROM martlet_quarantine") ?? 0)
        }
    }

    /// The number of records with values that no set can carry.
    package var withheldCount: Int {
        get throws {
            Int(try applying.connection.integer("SELECT count(*) FROM martlet_withheld") ?? 0)
        }
    }

    /// Returns the remote records that this device's tables refuse.
    package func quarantined() throws -> [QuarantinedRecord] {
        try Quarantine(store: applying, now: 0).list()
    }

    /// Tries the quarantined records again, because the tables may have changed.
    /// - Returns: The number of records that are still refused.
    @discardableResult
    package func retryQuarantined(now: Int64) throws -> Int {
        guard try !quarantined().isEmpty else { return 0 }
        return try inMendingTransaction {
            try closeExternalCapture(applying, now: now)
            try applying.setCapture(false)
            var applier = RemoteApplier(store: applying, registry: registry, now: now)
            try applier.releaseQuarantined()
            try applying.setCapture(true)
            observer?.applyingWillCommit(nil)
            return try quarantined().count
        }
    }
}
