internal import MartletCore
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit

/// What a device makes of failures: wait and try again, ask otherwise, or stop until a person acts.
extension DeviceNode {
    func refused(_ problem: Problem, retryAfter: Int64?, now: Int64) -> [Action] {
        switch (problem.status, problem.kind) {
        case (401, _): return halt(SyncError(.unauthorized, problem.detail))
        case (409, "identityReused"):
            do {
                try store.renewIdentity()
                state = .idle
                // Over the stream the server would tell the old name which sets are its own.
                return closeStream() + start(now: now)
            } catch {
                return pause(storageError(error))
            }
        case (409, "revisionAhead"), (409, "lineage"): return otherHistory(problem, now: now)
        case (409, _), (403, _): return halt(SyncError(.wrongDataSet, problem.detail))
        case (_, "versionUnsupported"): return halt(SyncError(.versionUnsupported, problem.detail))
        case (413, _):
            // The server takes less at once; a single set that is too large cannot get smaller.
            guard uploadBytes > 1 else { return halt(SyncError(.rejected, problem.detail)) }
            uploadBytes = uploadBytes > 64 << 10 ? uploadBytes / 2 : 1
            state = .idle
            return start(now: now)
        case (429, _), (500..., _):
            let seconds = retryAfter ?? problem.retryAfter
            return pause(
                SyncError(.busy, problem.detail),
                atLeast: Backoff.milliseconds(askedFor: seconds ?? 0))
        default: return halt(SyncError(.rejected, problem.detail))
        }
    }

    func pause(_ error: SyncError, atLeast floor: Int64 = 0) -> [Action] {
        failures += 1
        probe = nil
        endLease()
        let wait = max(
            floor, options.backoff.wait(failures: failures, random: store.randomBits()))
        let timer = number()
        state = .pausing(timer: timer, isPoll: false)
        return [
            .notify(.failed(error, retryIn: wait)), .setTimer(timer, milliseconds: wait),
        ]
    }

    func halt(_ error: SyncError) -> [Action] {
        state = .halted
        probe = nil
        endLease()
        return [.notify(.failed(error, retryIn: nil))] + closeStream()
    }

    /// Lets other processes on the file have their turn. Where even that fails, the lease ends by
    /// itself.
    private func endLease() {
        try? store.releaseLease(owner: owner)
    }

    func storageError(_ error: any Error) -> SyncError {
        switch error {
        case let error as SyncError: error
        case let error as StoreError where error.kind == .inconsistent:
            SyncError(.violation, error.message)
        case let error as SQLiteError:
            SyncError(.storage, "The device's file failed: \(error.message).")
        default: SyncError(.storage, "The device's file failed: \(error)")
        }
    }
}
