internal import MartletCore
internal import MartletProtocol
internal import MartletStore

/// What a device begins with: a snapshot, or the first part of one, before the first exchange.
extension DeviceNode {
    /// Cut downloads after which a device begins with the change log.
    private static var mostSnapshotCuts: Int { 5 }

    var mustFetchSnapshot: Bool {
        get throws {
            guard options.usesSnapshots, !hasAskedForSnapshot else { return false }
            return try store.cursor.revision == 0 && store.rejoining == nil
                && store.historyToConfirm == nil
                && !store.isSeeding
        }
    }

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
        do {
            try store.stageSnapshot(manifest)
        } catch {
            // Without it, everything comes as entries.
            return [.notify(.failed(storageError(error), retryIn: 0))] + start(now: now)
        }
        return start(now: now)
    }

    /// - Parameter cut: What cut the download; nil where there is no snapshot to be had.
    func snapshotFailed(_ number: Int, _ cut: SyncError?, now: Int64) -> [Action] {
        guard case .fetchingSnapshot(number) = state else { return [] }
        state = .idle
        guard let cut else { return start(now: now) }
        snapshotFailures += 1
        // Where only the snapshot cannot be had, the change log brings everything too.
        hasAskedForSnapshot = snapshotFailures >= Self.mostSnapshotCuts
        return hasAskedForSnapshot ? start(now: now) : pause(cut)
    }
}

// MARK: - The other parts

/// They are fetched one after another, beside exchanges; what others change meanwhile comes as
/// whole rows, also for records that are not here yet.
extension DeviceNode {
    /// Asks for the next part that is missing, where none is under way.
    func fetchPart() -> [Action] {
        guard case .none = parts else { return [] }
        do {
            // A part newer than the device waits for the exchange that brings it there.
            guard let pending = try store.pendingSnapshot, let part = pending.next,
                try store.revision >= pending.manifest.revision
            else { return [] }
            let number = number()
            parts = .fetching(number)
            return [.fetchPart(number, part, of: pending.manifest)]
        } catch {
            return retryParts(storageError(error))
        }
    }

    /// Waits no longer than it takes to reach the server: a person asks.
    func endPartPause() {
        if case .pausing = parts { parts = .none }
    }

    func resumeParts() -> [Action] {
        endPartPause()
        if case .halted = state { return [] }
        return fetchPart()
    }

    /// Takes no notice any more of a part that is under way.
    package func stopFetchingParts() {
        parts = .none
    }

    func partFetched(_ number: Int, path: String, now: Int64) -> [Action] {
        guard case .fetching(number) = parts else { return [] }
        parts = .none
        do {
            // Another process may have been faster, or the file has begun anew.
            guard let installed = try store.installPart(at: path, now: now) else {
                return fetchPart()
            }
            partFailures = 0
            return [.notify(.seeded(installed))] + fetchPart()
        } catch {
            return retryParts(seedingError(error))
        }
    }

    func partGone(_ number: Int, newest: SnapshotManifest?, now: Int64) -> [Action] {
        guard case .fetching(number) = parts else { return [] }
        parts = .none
        guard let newest else {
            return retryParts(SyncError(.busy, "The server has no snapshot at the moment."))
        }
        do {
            try store.replacePending(with: newest)
            let next = fetchPart()
            // Where it is newer than the device, an exchange comes first.
            return next.isEmpty ? wake(isUrgent: false, now: now) : next
        } catch {
            return retryParts(seedingError(error))
        }
    }

    func partFailed(_ number: Int, _ error: SyncError, retryAfter: Int64?) -> [Action] {
        guard case .fetching(number) = parts else { return [] }
        return retryParts(error, atLeast: Backoff.milliseconds(askedFor: retryAfter ?? 0))
    }

    private func retryParts(_ error: SyncError, atLeast floor: Int64 = 0) -> [Action] {
        partFailures += 1
        let wait = max(
            floor, options.backoff.wait(failures: partFailures, random: store.randomBits()))
        let timer = number()
        parts = .pausing(timer: timer)
        return [
            .notify(.seedingFailed(error, retryIn: wait)),
            .setPartTimer(timer, milliseconds: wait),
        ]
    }

    private func seedingError(_ error: any Error) -> SyncError {
        error as? SyncError ?? SyncError.seeding(error) as? SyncError ?? storageError(error)
    }
}
