package import MartletModel
package import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Stages an answer that is applied later, together with the following ones: a snapshot, or parts
/// of a difference. Until then the tables stay as they are. After a restart, fetching continues
/// where it was.
extension DeviceStore {
    /// The position at which fetching continues: after the staged changes if there are any, else at
    /// the device's revision.
    package var cursor: (revision: Revision, lineage: String?) {
        get throws {
            if let staged = try applying.integerState(Self.stagedRevision) {
                return (staged, try applying.textState(Self.stagedLineage))
            }
            if try rejoining != nil { return (0, nil) }
            return (try revision, try applying.textState("lineage"))
        }
    }

    /// Whether anything is staged.
    package var hasStaged: Bool {
        get throws { try applying.integerState(Self.stagedRevision) != nil }
    }

    /// Returns whether any set was sent whose verdict is neither staged nor in the given answer.
    /// The device checks this before it applies a difference or a snapshot, which may contain the
    /// effects of these sets without naming them.
    /// - Parameter answered: The sets whose verdicts the answer has.
    package func hasUndecided(besides answered: Set<String>) throws -> Bool {
        // Sets of a history that the server does not share cannot have had effects there.
        let condition = try rejoining.map { "AND \(Outbox.isCommon(upTo: $0))" } ?? ""
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

    /// Whether part of a difference is staged, and the rest of it has to be asked for. The rest has
    /// to be rows too: an entry may change part of a record whose other changes follow later.
    var isInDifference: Bool {
        get throws { try applying.integerState(Self.stagedCut) != nil }
    }

    /// Whether the device has to ask for rows in place of entries. An entry holds only the changed
    /// attributes of a record, and the record may not be here yet.
    var needsRows: Bool {
        get throws {
            try isInDifference || isSeeding || rejoining != nil
                || stagedManifest != nil || slicedUpTo != nil
        }
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
        return try inApplyingTransaction {
            guard try leaseOfOther(than: owner, now: now) == nil,
                try cursor.revision == gatheredRevision, reaching >= gatheredRevision
            else { return false }
            let inbox = Inbox(store: applying)
            for (set, body) in pieces { try inbox.add(set, body) }
            try setStaged(reaching, lineage: lineage)
            let isCut = more && sets.contains(where: \.isDifference)
            try applying.setState(Self.stagedCut, isCut ? .integer(1) : .null)
            if let dataSet { try applying.setState("dataSet", .text(dataSet)) }
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
        try inApplyingTransaction {
            try clearStaged()
            let text = String(decoding: SyncCoder.encode(manifest), as: UTF8.self)
            try applying.setState(Self.stagedSnapshot, .text(text))
            try setStaged(manifest.revision, lineage: manifest.lineage)
        }
    }

    /// The manifest of the staged snapshot; nil if none is staged.
    var stagedManifest: SnapshotManifest? {
        get throws {
            guard let text = try applying.textState(Self.stagedSnapshot) else { return nil }
            return try SyncCoder.decodeSnapshotManifest(Array(text.utf8))
        }
    }

    func setStaged(_ revision: Revision, lineage: String?) throws {
        try applying.setState(Self.stagedRevision, .integer(revision))
        try applying.setState(Self.stagedLineage, lineage.map { .text($0) } ?? .null)
    }

    /// Deletes what is staged, in the caller's transaction.
    func clearStaged() throws {
        try Inbox(store: applying).clear()
        for name in [
            Self.stagedRevision, Self.stagedLineage, Self.stagedSnapshot, Self.stagedCut,
            Self.slicedPart,
        ] {
            if try applying.textState(name) != nil { try applying.setState(name, .null) }
        }
    }

    /// Deletes what is staged, because the server no longer continues from there.
    package func discardStaged() throws {
        try inApplyingTransaction { try clearStaged() }
    }

    /// Runs `body` with a snapshot attached.
    func withSnapshot<Result>(
        at path: String, _ body: (SnapshotRows) throws -> Result
    ) throws -> Result {
        let snapshot = try SnapshotRows(attaching: path, vfs: vfs, to: applying)
        defer { snapshot.detach() }
        return try body(snapshot)
    }

    /// Runs `body` with the staged data.
    func withGround<Result>(_ body: (Rebase.DataSources) throws -> Result) throws -> Result {
        var ground = Rebase.DataSources()
        guard try hasStaged else { return try body(ground) }
        let inbox = Inbox(store: applying)
        ground.hasStaged = try !inbox.isEmpty
        ground.identifiers = try inbox.identifiers()
        ground.manifest = try stagedManifest
        return try body(ground)
    }

    static let stagedRevision = "stagedRevision"
    static let stagedLineage = "stagedLineage"
    static let stagedCut = "stagedCut"
    static let stagedSnapshot = "stagedSnapshot"
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
        try inApplyingTransaction {
            if let own = try dataSet, let other = batch.dataSet, own != other {
                throw SyncError(
                    .wrongDataSet,
                    "The stream is of another data set than this file belongs to. Check the"
                        + " server's address and the token.")
            }
            // A cache may answer with another data set's batch. The answer of an exchange repeats
            // the name of its request, so an exchange tells the device to which data set it
            // belongs.
            guard try dataSet != nil || batch.dataSet == nil else { return .needsExchange }
            let current = try revision
            guard !batch.isBehind else {
                return batch.goesOn ?? .max <= current ? .old(deltas: 0) : .needsExchange
            }
            guard batch.nextVersion > current else {
                countPassedOver(batch.deltas.count)
                return .old(deltas: batch.deltas.count)
            }
            let isComplete =
                batch.from.map { $0 <= current }
                ?? (batch.deltas.last?.version == batch.nextVersion)
            guard isComplete, !batch.isDifference, try fetchingAnew == nil,
                try !hasStaged && !isSeeding && rejoining == nil && slicedUpTo == nil
            else {
                return .needsExchange
            }
            let sets = try batch.changeSets(after: current, schema: applying.schema)
            var ground = Rebase.DataSources()
            ground.isLenient = batch.from == nil
            var report = try reconcile(
                sets[...], from: current, on: ground, reaching: batch.nextVersion, now: now)
            let passedOver = batch.deltas.count { $0.version <= current }
            countPassedOver(passedOver)
            report.passedOver += passedOver
            try applying.setState("lineage", batch.lineage.map { .text($0) } ?? .null)
            if let dataSet = batch.dataSet { try applying.setState("dataSet", .text(dataSet)) }
            // This is often enough to find out later how far back a history is shared.
            if batch.lineage != nil, batch.nextVersion >> 6 != current >> 6 {
                try Outbox(store: applying).markLineage()
            }
            observer?.applyingWillCommit(report)
            return .applied(report, revision: batch.nextVersion)
        }
    }

    /// Returns the values of other devices for which the tables have no place, by type.
    package func keptAside() throws -> [KeptAside] { try Aside(store: applying).list() }

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
        return try inApplyingTransaction {
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
