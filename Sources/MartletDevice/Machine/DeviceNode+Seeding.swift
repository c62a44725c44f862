internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit
internal import SQLiteRecords

/// Fetches a snapshot, or the first part of one, before the first exchange.
extension DeviceNode {
    /// A part of a snapshot that is stored alongside the file.
    struct FirstPart {
        let path: String
        var cursor: SnapshotCursor
        /// The revision that the device reports until the whole part is applied.
        let told: Revision
    }

    /// The number of cut downloads after which a device begins with the change log.
    private static var mostSnapshotCuts: Int { 5 }

    /// The number of snapshots that the device tries one after another without a wait, each because
    /// the server no longer had the one before. The server keeps two, so it has the third.
    private static var mostPartsGone: Int { 3 }

    func fetchSnapshot() -> [Action] {
        hasAskedForSnapshot = true
        let number = number()
        state = .fetchingSnapshot(number)
        return [.fetchSnapshot(number)]
    }

    func snapshotFetched(
        _ number: Int, _ manifest: SnapshotManifest, now: Int64
    ) -> [Action] {
        guard case .fetchingSnapshot(number) = state else { return [] }
        state = .idle
        // The snapshot of an empty log has nothing that is missing.
        guard manifest.revision > 0 else { return start(now: now) }
        do {
            // The records that left the user's view are told from those that are there when everything
            // is fetched, and the rows of a snapshot come after that.
            if manifest.view != nil, try store.standing.refetching != nil {
                store.removeFetchedPart()
                return start(now: now)
            }
            try store.stageSnapshot(manifest)
        } catch {
            // Without the snapshot, the change log brings everything.
            return [.notify(.failed(seedingError(error), retryIn: 0))] + start(now: now)
        }
        return start(now: now)
    }

    /// Handles a download that did not end well.
    /// - Parameter cut: The error that cut the download; nil if the server has no snapshot.
    func snapshotFailed(_ number: Int, _ cut: SyncError?, now: Int64) -> [Action] {
        guard case .fetchingSnapshot(number) = state else { return [] }
        state = .idle
        guard let cut else { return start(now: now) }
        snapshotFailures += 1
        // If only the snapshot is unavailable, the change log brings everything too.
        hasAskedForSnapshot = snapshotFailures >= Self.mostSnapshotCuts
        return hasAskedForSnapshot ? start(now: now) : pause(cut)
    }
}

// MARK: - The other parts

/// The device fetches them one after another, alongside exchanges. Meanwhile, changes by other
/// devices arrive as whole rows, also for records that are not here yet.
extension DeviceNode {
    /// Whether a part is being fetched or installed.
    package var isFetchingPart: Bool {
        switch parts {
        case .fetching, .installing: true
        case .none, .pausing: false
        }
    }

    /// Asks for the next missing part, unless one is under way.
    func fetchPart() -> [Action] {
        guard case .none = parts else { return [] }
        do {
            guard let pending = try store.standing.installable, let part = pending.next
            else { return [] }
            let number = number()
            parts = .fetching(number)
            return [.fetchPart(number, part, of: pending.manifest)]
        } catch {
            return retryParts(storageError(error))
        }
    }

    /// Ends the wait before the next try, because a person asks.
    func endPartPause() {
        if case .pausing = parts { parts = .none }
    }

    func resumeParts() -> [Action] {
        endPartPause()
        // The list may be old by now, so the next one is tried at once.
        partsGone = min(partsGone, Self.mostPartsGone - 2)
        if case .halted = state { return [] }
        return fetchPart()
    }

    func partFetched(_ number: Int, path: String, now: Int64) -> [Action] {
        guard case .fetching(number) = parts else { return [] }
        return installNext(number, path, SnapshotCursor(), now: now)
    }

    /// Applies the next slice of a part. The user's writes go first between two slices.
    func installNext(
        _ number: Int, _ path: String, _ cursor: SnapshotCursor, now: Int64
    ) -> [Action] {
        parts = .none
        do {
            // Another process may have installed it, or the file was emptied to be fetched again.
            guard let installed = try install(path, cursor, now: now) else { return fetchPart() }
            (partFailures, partsGone) = (0, 0)
            guard let next = installed.next else {
                return [.notify(.seeded(installed))] + fetchPart()
            }
            parts = .installing(number, path: path, next)
            return [
                .notify(.applied(installed.report, revision: try store.revision)),
                .applyNext(exchange: number),
            ]
        } catch {
            return retryParts(seedingError(error))
        }
    }

    private func install(
        _ path: String, _ cursor: SnapshotCursor, now: Int64
    ) throws -> InstalledPart? {
        let batch = RemoteBatch(
            partAt: path, from: cursor, limit: options.sliceRecords, now: now)
        if case .installed(let part) = try engine.apply(batch).outcome { return part }
        return nil
    }

    /// Applies the next slice of the first part, whose file is stored alongside the device's; after
    /// the last slice the exchange ends. A fault of that file is no failure of the exchange: the
    /// device fetches the part again like the others.
    func installFirst(
        _ part: FirstPart, _ pending: PendingAnswer, _ exchange: Int, now: Int64
    ) -> [Action] {
        do {
            guard let installed = try install(part.path, part.cursor, now: now) else {
                return finish(pending, exchange, now: now)
            }
            guard let next = installed.next else {
                store.removeFetchedPart()
                let revision = try store.revision
                return [.notify(.applied(installed.report, revision: revision))]
                    + finish(pending, exchange, now: now)
            }
            var pending = pending
            pending.part?.cursor = next
            state = .applying(exchange: exchange, answer: pending)
            return [
                .notify(.applied(installed.report, revision: part.told)),
                .applyNext(exchange: exchange),
            ]
        } catch let error as SQLiteError {
            return pause(storageError(error))
        } catch {
            store.removeFetchedPart()
            return [.notify(.seedingFailed(seedingError(error), retryIn: 0))]
                + finish(pending, exchange, now: now)
        }
    }

    func partGone(_ number: Int, newest: SnapshotManifest?, now: Int64) -> [Action] {
        guard case .fetching(number) = parts else { return [] }
        parts = .none
        do {
            let standing = try store.standing
            // Another process may have installed the last part.
            guard let missing = standing.missing else { return fetchPart() }
            if Self.isOfOtherView(newest, than: missing.manifest) {
                switch state {
                case .idle, .pausing(_, isPoll: true):
                    // The rows of the part come with all others, unless they do already.
                    if probe == nil, standing.rejoining == nil {
                        partsGone += 1
                        // If they cannot be applied, the device comes back to the part.
                        if partsGone < Self.mostPartsGone { return otherView(now: now) }
                    }
                default: break
                }
                return retryParts(
                    SyncError(.busy, "The server has no snapshot of the user's view any more."))
            }
        } catch {
            return retryParts(storageError(error))
        }
        guard let newest else {
            // There is none for a user who sees a part, and an exchange says whether he does.
            return retryParts(SyncError(.busy, "The server has no snapshot at the moment."))
                + wake(isUrgent: false, now: now)
        }
        do {
            try store.replacePending(with: newest)
            partsGone += 1
            guard partsGone < Self.mostPartsGone else {
                // A cache may list what is gone, and servers that share an address may each list
                // their own.
                return retryParts(
                    SyncError(.busy, "The server does not have the snapshot that it lists."))
            }
            let next = fetchPart()
            // If it is newer than the device, an exchange comes first.
            return next.isEmpty ? wake(isUrgent: false, now: now) : next
        } catch {
            return retryParts(seedingError(error))
        }
    }

    /// Returns whether the device can fetch no part of the snapshot that it began with, because the
    /// user's view is another one, or the server has no snapshot of it.
    private static func isOfOtherView(
        _ newest: SnapshotManifest?, than begun: SnapshotManifest?
    ) -> Bool {
        if begun?.view == nil { return newest?.view != nil }
        return newest?.view != begun?.view
    }

    func partFailed(_ number: Int, _ error: SyncError, retryAfter: Int64?) -> [Action] {
        guard case .fetching(number) = parts else { return [] }
        let floor = Backoff.milliseconds(
            askedFor: retryAfter ?? 0, byServer: error.kind != .offline)
        return retryParts(error, atLeast: floor)
    }

    private func retryParts(_ error: SyncError, atLeast floor: Int64 = 0) -> [Action] {
        partFailures += 1
        let wait = max(
            floor, backoff.wait(failures: partFailures, random: store.randomBits()))
        let timer = number()
        parts = .pausing(timer: timer)
        return [
            .notify(.seedingFailed(error, retryIn: wait)),
            .setPartTimer(timer, milliseconds: wait),
        ]
    }

    private func seedingError(_ error: any Error) -> SyncError {
        error as? SyncError ?? (error as? SnapshotError).map(SyncError.init) ?? storageError(error)
    }
}
