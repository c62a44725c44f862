internal import MartletModel
internal import MartletProtocol
internal import MartletStore

/// What a device does when the server's history is not its own: finds what they share, and comes
/// back.
extension DeviceNode {
    /// The search, by halves, among the revisions whose hash the device remembers.
    struct Probe {
        /// The server has it.
        var low: Revision
        /// The server does not have it.
        var high: Revision
        /// What is being asked for.
        var at: Revision
    }

    /// The server does not have the revision that was named.
    func otherHistory(_ problem: Problem, now: Int64) -> [Action] {
        do {
            if let asked = probe {
                probe?.high = asked.at
                return try ask(now: now)
            }
            if try store.hasStaged {
                // What is staged is of a server that is gone; without it the device may still be
                // in step with this one.
                try store.discardStaged()
                state = .idle
                return start(now: now)
            }
            guard try store.dataSet != nil else {
                return halt(SyncError(.wrongDataSet, problem.detail))
            }
            // What a device that fetches everything anew has queued rests on what it had before.
            let before = try store.historyBefore?.revision ?? store.fetchingAnew
            probe = Probe(low: 0, high: try before ?? store.revision, at: 0)
            return closeStream() + (try ask(now: now))
        } catch {
            return pause(storageError(error))
        }
    }

    /// The server has the revision that was asked for.
    func isCommon(now: Int64) throws -> [Action] {
        if let asked = probe { probe?.low = asked.at }
        return try ask(now: now)
    }

    /// Asks for the next revision; where there is none left, the state is fetched.
    func ask(now: Int64) throws -> [Action] {
        guard let found = probe else { return start(now: now) }
        guard let place = try store.checkpoint(between: found.low, and: found.high) else {
            probe = nil
            guard try store.beginRejoining(upTo: found.low, owner: owner, now: now) else {
                return pause(SyncError(.busy, "Another process took over the exchange."))
            }
            hasProbed = true
            isCatchingUp = false
            state = .idle
            return start(now: now)
        }
        probe?.at = place.revision
        let exchange = number()
        let gathered = try store.gatherProbe(
            at: place, owner: owner, isGone: options.isOwnerGone,
            lease: options.exchangeTimeout * 2, name: name(of: exchange), now: now)
        guard case .request(let body, _) = gathered else {
            return pause(SyncError(.busy, "Another process took over the exchange."))
        }
        unanswered = []
        return send(exchange, body, now: now)
    }
}
