internal import MartletModel
internal import MartletProtocol
internal import MartletStore

/// Handles a server whose history is not the device's own: finds the shared part, and rejoins.
extension DeviceNode {
    /// The search, by halves, among the revisions whose hash the device remembers.
    struct Probe {
        /// A revision that the server has.
        var low: Revision
        /// A revision that the server does not have.
        var high: Revision
        /// The revision that the device is asking for.
        var at: Revision
    }

    /// Handles the answer that the server does not have the revision that was named.
    func otherHistory(_ problem: Problem, now: Int64) -> [Action] {
        do {
            if let asked = probe {
                probe?.high = asked.at
                return try ask(now: now)
            }
            let standing = try store.standing
            if standing.staged != nil, !standing.hasAppliedSlices {
                // The staged changes are those of a server that is gone. Without them the device
                // may still be in step with this one.
                try store.discardStaged()
                state = .idle
                return start(now: now)
            }
            guard try store.dataSet != nil else {
                return halt(SyncError(.wrongDataSet, problem.detail))
            }
            // If changes are staged, the server has refused their revision, and not the device's own. A
            // device that fetches everything does not name its own, either.
            let isOwn = standing.staged == nil && standing.rejoining == nil
            return try search(
                below: isOwn ? standing.newestOfHistory : standing.endOfHistory, now: now)
        } catch {
            return pause(storageError(error))
        }
    }

    /// Handles an answer that ends before a revision which the server had when the device began to rejoin:
    /// the device looks for the shared history once more, after a wait.
    func restoredAgain(now: Int64) throws -> [Action] {
        try store.discardStaged()
        isCatchingUp = false
        return pause(
            SyncError(
                .busy,
                "The server's history has become shorter while the device fetched everything again: the"
                    + " server was restored once more. The device asks for the shared history again."
            ))
    }

    /// Begins to look for the newest revision that both histories share.
    func search(below revision: Revision, now: Int64) throws -> [Action] {
        probe = Probe(low: 0, high: revision, at: 0)
        return closeStream() + (try ask(now: now))
    }

    /// Handles the answer that the server does not know who gave the device its records. The history is
    /// the device's own, but all rows are fetched again and replace those that it has.
    func otherView(now: Int64) -> [Action] {
        do {
            // The server compares histories first, so it has the revision that was asked for.
            if probe != nil { return try isCommon(now: now) }
            let standing = try store.standing
            // A file that was emptied and is whole again has sets that are newer than the history
            // it asked for. The server has yet to say whether it has the newer one, too.
            if standing.refetching == nil, try store.confirmHistory(owner: owner, now: now) {
                state = .idle
                return start(now: now)
            }
            // A device that comes back to a restored server does not take its lost sets for accepted ones,
            // although the user's view changes meanwhile.
            let restored = standing.isForView ? nil : standing.rejoining
            // A file that was emptied has the sets of the revision that it had, too.
            let common = restored ?? max(standing.newestOfHistory, standing.refetching?.goal ?? 0)
            guard
                try store.beginRejoining(
                    upTo: common, isForView: restored == nil, owner: owner, now: now)
            else {
                return pause(SyncError(.busy, "Another process took over the exchange."))
            }
            // It may have records that the user may not see any more.
            store.removeFetchedPart()
            // There is nothing to ask about the history.
            hasProbed = true
            isCatchingUp = false
            state = .idle
            return closeStream() + start(now: now)
        } catch {
            return pause(storageError(error))
        }
    }

    /// Handles the answer that the server has the revision that was asked for.
    func isCommon(now: Int64) throws -> [Action] {
        if let asked = probe { probe?.low = asked.at }
        return try ask(now: now)
    }

    /// Asks for the next revision; if there is none left, begins to fetch the server's state.
    func ask(now: Int64) throws -> [Action] {
        guard let found = probe else { return start(now: now) }
        guard let checkpoint = try store.checkpoint(between: found.low, and: found.high) else {
            probe = nil
            // A device that has the server's history looked for it only because it was stopped while it
            // replaced the rows of another view.
            let standing = try store.standing
            let newest = standing.newestOfHistory
            guard
                try store.beginRejoining(
                    // The server may have the end of an answer whose first entries the device has.
                    upTo: min(found.low, newest),
                    isForView: standing.isForView && found.low >= newest, owner: owner, now: now)
            else {
                return pause(SyncError(.busy, "Another process took over the exchange."))
            }
            hasProbed = true
            isCatchingUp = false
            state = .idle
            return start(now: now)
        }
        probe?.at = checkpoint.revision
        let exchange = number()
        let gathered = try store.gatherProbe(
            at: checkpoint, owner: owner, isGone: options.isOwnerGone,
            lease: options.exchangeTimeout * 2, name: name(of: exchange), now: now)
        guard case .request(let body, _) = gathered else {
            return pause(SyncError(.busy, "Another process took over the exchange."))
        }
        unanswered = []
        return send(exchange, body, now: now)
    }
}
