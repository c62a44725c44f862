internal import MartletProtocol

/// Ends an exchange, and before that removes what is left of records that the user may not see any more.
extension DeviceNode {
    /// Handles the end of an answer: everything that it brought is in the tables.
    func finish(_ pending: PendingAnswer, _ exchange: Int, now: Int64) -> [Action] {
        failures = 0
        beginnings = 0
        answeredSoon(now: now)
        do {
            let standing = try store.noteUser(of: pending.answer)
            // The removal needs no lease, so another process may exchange meanwhile.
            try store.releaseLease(owner: owner)
            guard standing.hasTraces, !pending.answer.more else {
                return end(pending.answer, now: now)
            }
        } catch {
            return pause(storageError(error))
        }
        var pending = pending
        pending.isApplied = true
        state = .applying(exchange: exchange, answer: pending)
        return [.applyNext(exchange: exchange)]
    }

    /// Removes some of what is left. The user's writes go first between two steps, and so does an exchange
    /// if the device is woken: the removal continues when that has brought everything.
    func removeTraces(_ answer: SyncAnswer, _ exchange: Int, now: Int64) -> [Action] {
        // If a step fails, the next exchange goes on with it.
        let isDone = (try? store.removeTraces(pages: options.sweptPages)) ?? true
        return isDone || isWoken ? end(answer, now: now) : [.applyNext(exchange: exchange)]
    }
}
