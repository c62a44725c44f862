internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit

/// Handles failures: the device waits and tries again, asks in another way, or stops until a person
/// acts.
extension DeviceNode {
    func refused(_ problem: Problem, retryAfter: Int64?, now: Int64) -> [Action] {
        let asked = retryAfter ?? problem.retryAfter ?? 0
        guard problem.isOfServer else {
            // The device does not stop for a network that wants a login, or for a proxy.
            if problem.status == 413 { takeLess() }
            return pause(
                SyncError(.offline, problem.detail),
                atLeast: Backoff.milliseconds(askedFor: asked, byServer: false))
        }
        switch (problem.status, problem.kind) {
        case (409, "identityReused"), (409, "revisionAhead"), (409, "lineage"), (409, "view"):
            // The server means this refusal, but a cache may repeat it.
            if probe == nil { beginnings += 1 }
            guard beginnings <= Self.mostBeginnings else { return waitToBegin() }
        default: break
        }
        switch (problem.status, problem.kind) {
        case (409, "identityReused"):
            do {
                try store.renewIdentity()
                state = .idle
                // Over the stream, the server would use the old name to mark the device's own sets.
                return closeStream() + start(now: now)
            } catch {
                return pause(storageError(error))
            }
        case (409, "revisionAhead"), (409, "lineage"): return otherHistory(problem, now: now)
        case (409, "view"): return otherView(now: now)
        case (413, _): return tookLess(problem, now: now)
        default:
            let error = SyncError(
                SyncError.Kind(problem, status: problem.status), problem.detail)
            guard error.kind == .busy else { return halt(error) }
            return pause(error, atLeast: Backoff.milliseconds(askedFor: asked))
        }
    }

    /// The number of times in a row that a device starts over without a wait. After a restore of
    /// the server it may need a new identity, discard what is staged, and look for a common
    /// history: one time for each.
    private static let mostBeginnings = 4

    /// Makes the device wait before it starts over once more. After the wait it obeys the server
    /// again, once.
    private func waitToBegin() -> [Action] {
        beginnings = Self.mostBeginnings - 1
        return pause(
            SyncError(
                .offline,
                "The server told this device several times in a row to start over. Something on the way may answer"
                    + " in its place."))
    }

    /// Handles a lost exchange: the line may carry fewer bytes than this one had. The device then
    /// sends and asks for less. If it cannot send the queue, it fetches other devices' changes
    /// without it.
    func lost(_ error: SyncError) -> [Action] {
        takeLess()
        if pullsFirst {
            pullsFirst = false
        } else if !unanswered.isEmpty {
            uploadFailures += 1
            pullsFirst = uploadFailures > 1
        }
        return pause(error)
    }

    private func takeLess() {
        let half = max(Self.leastBytes, min(uploadBytes, requestBytes) / 2)
        uploadBytes = min(uploadBytes, half)
        answerBytes = max(Self.leastBytes, answerBytes / 2)
    }

    /// The number of bytes of change sets below which requests do not shrink.
    static var leastBytes: Int { 16 << 10 }

    /// Handles the refusal of a body for its size, by the server or a proxy. If a single set is too
    /// large, the device refuses it, so that everything else continues. Before that it fetches
    /// everything, because the server may have accepted the set earlier and the answer may have
    /// been lost.
    private func tookLess(_ problem: Problem, now: Int64) -> [Action] {
        state = .idle
        guard unanswered.count < 2, let single = unanswered.first else {
            guard !unanswered.isEmpty, uploadBytes > 1 else {
                return halt(SyncError(.rejected, problem.detail))
            }
            uploadBytes = uploadBytes > 64 << 10 ? uploadBytes / 2 : 1
            return start(now: now)
        }
        guard tooLarge == single else {
            tooLarge = single
            isCatchingUp = true
            return start(now: now)
        }
        tooLarge = nil
        do {
            let report = try store.refuse(
                single,
                message: "The server takes no request as large as this save: \(problem.detail)"
                    + " Make the edits again in smaller saves, or have the server take more and"
                    + " try again.", now: now)
            return [.notify(.applied(report, revision: try store.revision))] + start(now: now)
        } catch {
            return pause(storageError(error))
        }
    }

    func pause(_ error: SyncError, atLeast floor: Int64 = 0) -> [Action] {
        failures += 1
        probe = nil
        endLease()
        let wait = max(
            floor,
            backoff.wait(
                failures: max(failures, uploadFailures), random: store.randomBits()))
        let timer = number()
        state = .pausing(timer: timer, isPoll: false)
        pauseEnd = moment + wait
        return [
            .notify(.failed(error, retryIn: wait)), .setTimer(timer, milliseconds: wait),
        ]
    }

    /// The waits between failed tries. The longest is at least as long as the wait between polls.
    var backoff: Backoff {
        var backoff = options.backoff
        backoff.longest = max(backoff.longest, options.pollInterval ?? 0)
        return backoff
    }

    func halt(_ error: SyncError) -> [Action] {
        let timer = number()
        state = .halted(timer: timer)
        pauseEnd = moment + options.haltRetry
        haltEnd = moment + options.saveRetry
        probe = nil
        endLease()
        return [
            .notify(.failed(error, retryIn: nil)),
            .setTimer(timer, milliseconds: options.haltRetry),
        ] + closeStream()
    }

    /// Shortens the current wait to a minute, because there is a change to send.
    func comeSooner(now: Int64) -> [Action] {
        let wait: Int64
        if case .halted = state {
            wait = max(0, haltEnd - now)
        } else {
            guard pauseEnd - now > options.saveRetry else { return [] }
            // The waits are spread, because many devices may have failed together.
            let least = options.saveRetry / 4
            wait = least + Int64(store.randomBits() % UInt64(options.saveRetry - least + 1))
        }
        guard now + wait < pauseEnd else { return [] }
        pauseEnd = now + wait
        let timer = number()
        if case .halted = state {
            state = .halted(timer: timer)
        } else {
            state = .pausing(timer: timer, isPoll: false)
        }
        return [.setTimer(timer, milliseconds: wait)]
    }

    /// Ends the lease, so that other processes can use the file. If that fails, the lease ends
    /// automatically at its time.
    func endLease() {
        try? store.releaseLease(owner: owner)
    }

    func storageError(_ error: any Error) -> SyncError {
        switch error {
        case let error as SyncError: error
        case let error as StoreError where error.kind == .inconsistent:
            SyncError(.violation, error.message)
        case let error as SQLiteError where error.isStatementError:
            SyncError(
                .file,
                "The device's file failed: \(error.message). Another program has changed its tables; open"
                    + " it again.")
        case let error as SQLiteError where error.isBusy:
            SyncError(.busy, "Another program is writing to the device's file, and does not end.")
        case let error as SQLiteError where error.isDiskFull || error.isInputOutput:
            SyncError(.storage, "The device's file failed: \(error.message).")
        case let error as SQLiteError:
            SyncError(
                error.isCannotOpen ? .storage : .file,
                "The device's file failed: \(StoreError(error).message)")
        // The error's own sentence says what to do.
        case let error as StoreError:
            SyncError(
                [.diskFull, .inputOutput].contains(error.kind) ? .storage : .file, error.message)
        default: SyncError(.storage, "The device's file failed: \(error)")
        }
    }
}
