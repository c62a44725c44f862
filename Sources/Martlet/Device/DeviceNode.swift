public import MartletCore
package import MartletProtocol
internal import MartletStore
internal import SQLiteKit

/// A device as a synchronous machine: each event changes its state and yields what to do next.
///
/// It decides when to exchange, what to do with an answer, and how long to wait after a failure.
/// It knows no clock, no network and no tasks; a shell around it performs the actions and brings
/// the results back as events.
public final class DeviceNode {
    /// What can happen to a device.
    package enum Event: Sendable {
        /// Something may want to be sent, or fetched. Urgent: a person asks; do not wait out a
        /// pause.
        case wake(isUrgent: Bool)
        /// A timer set earlier has run out.
        case timer(Int)
        /// An answer has come, inflated.
        case answered(exchange: Int, status: Int, body: [UInt8], retryAfter: Int64?)
        /// The exchange failed on the way; whether the server took it is unknown.
        case failed(exchange: Int, message: String)
        /// Go on with a big answer.
        case applyNext(exchange: Int)
    }

    /// What the shell is to do.
    package enum Action: Sendable {
        case send(exchange: Int, body: [UInt8])
        /// Bring back `timer` with this number after so many milliseconds.
        case setTimer(Int, milliseconds: Int64)
        /// Bring back `applyNext` soon; the user's writes may go first.
        case applyNext(exchange: Int)
        case notify(Notice)
    }

    /// What is worth telling whoever listens.
    package enum Notice: Sendable {
        /// Part of an answer was applied.
        case applied(RebaseReport, revision: Revision)
        /// An exchange has ended well.
        case exchanged(revision: Revision, isComplete: Bool)
        /// An exchange has failed; the next try is in so many milliseconds, or never by itself.
        case failed(SyncError, retryIn: Int64?)
    }

    /// How patient and how greedy the device is.
    public struct Options: Sendable {
        /// Milliseconds after which an exchange without an answer counts as failed.
        public var exchangeTimeout: Int64 = 120_000
        /// Milliseconds between exchanges when nothing happens; nil: only when woken.
        public var pollInterval: Int64?
        public var backoff = Backoff()
        /// Records of one transaction while a big answer is applied.
        public var sliceRecords = 2_000
        /// Bytes of change sets in one request, before compression.
        public var uploadBytes = Limits.uploadBytes
        /// What the name begins with under which this device holds the file's lease.
        public var ownerPrefix = ""
        /// Whether the holder of a lease, by its name, died without ending it.
        public var isOwnerGone: @Sendable (_ owner: String) -> Bool = { _ in false }

        public init() {}
    }

    private enum State {
        case idle
        case exchanging(exchange: Int, timer: Int)
        case applying(exchange: Int, answer: PendingAnswer)
        case pausing(timer: Int)
        /// Not tried again by itself.
        case halted
    }

    private struct PendingAnswer {
        let answer: SyncAnswer
        var position: Int
    }

    package let store: DeviceStore
    private let options: Options
    private let owner: String
    private var state = State.idle
    private var lastNumber = 0
    private var failures = 0
    private var uploadBytes: Int
    /// Woken while busy: exchange again once done.
    private var isWoken = false
    /// The last answer said there is more: fetch that before sending again.
    private var isCatchingUp = false
    private var waitSeconds: Int64?
    /// Change sets in the request under way, and how many of them have met their fate.
    private var unanswered = 0

    package init(store: DeviceStore, options: Options = Options()) {
        self.store = store
        self.options = options
        owner = options.ownerPrefix + store.newIdentity()
        uploadBytes = options.uploadBytes
    }

    /// Whether nothing is under way and nothing is planned but the next poll.
    package var isIdle: Bool {
        if case .idle = state { return true }
        return false
    }

    /// Takes one event.
    /// - Parameter now: Milliseconds since 1970.
    package func handle(_ event: Event, now: Int64) -> [Action] {
        switch event {
        case .wake(let isUrgent): wake(isUrgent: isUrgent, now: now)
        case .timer(let number): timer(number, now: now)
        case .answered(let exchange, let status, let body, let retryAfter):
            answered(exchange, status: status, body: body, retryAfter: retryAfter, now: now)
        case .failed(let exchange, let message):
            isCurrent(exchange) ? pause(SyncError(.offline, message)) : []
        case .applyNext(let exchange): applyNext(exchange, now: now)
        }
    }

    private func number() -> Int {
        lastNumber += 1
        return lastNumber
    }

    private func isCurrent(_ exchange: Int) -> Bool {
        if case .exchanging(exchange, _) = state { return true }
        return false
    }
}

// MARK: - Starting

extension DeviceNode {
    private func wake(isUrgent: Bool, now: Int64) -> [Action] {
        switch state {
        case .idle: return start(now: now)
        case .exchanging, .applying:
            isWoken = true
            return []
        case .pausing, .halted: return isUrgent ? start(now: now) : []
        }
    }

    private func timer(_ number: Int, now: Int64) -> [Action] {
        switch state {
        case .exchanging(_, number):
            return pause(SyncError(.offline, "The server did not answer in time."))
        case .pausing(number): return start(now: now)
        default: return []
        }
    }

    private func start(now: Int64) -> [Action] {
        do {
            let gathered = try store.gather(
                owner: owner, isGone: options.isOwnerGone, lease: options.exchangeTimeout * 2,
                byteLimit: uploadBytes,
                includesChanges: !isCatchingUp, now: now)
            switch gathered {
            case .leased(let until):
                let timer = number()
                state = .pausing(timer: timer)
                return [.setTimer(timer, milliseconds: max(50, min(until - now, 5_000)))]
            case .request(let body, let changeSets):
                unanswered = changeSets
                let exchange = number()
                let timer = number()
                state = .exchanging(exchange: exchange, timer: timer)
                isWoken = false
                return [
                    .send(exchange: exchange, body: body),
                    .setTimer(timer, milliseconds: options.exchangeTimeout),
                ]
            }
        } catch {
            return pause(storageError(error))
        }
    }
}

// MARK: - Answers

extension DeviceNode {
    private func answered(
        _ exchange: Int, status: Int, body: [UInt8], retryAfter: Int64?, now: Int64
    ) -> [Action] {
        guard isCurrent(exchange) else { return [] }
        guard status == 200 else {
            return refused(
                SyncCoder.decodeProblem(body, status: status), retryAfter: retryAfter, now: now)
        }
        do {
            let answer = try SyncCoder.decodeAnswer(body)
            if let defect = answer.changeSets.lazy.compactMap(\.defect).first {
                return pause(SyncError(.violation, "The answer cannot be read: \(defect)"))
            }
            if let own = try store.dataSet, let other = answer.dataSet, own != other {
                return halt(
                    SyncError(
                        .wrongDataSet,
                        "The server answers for another data set than this file"
                            + " belongs to. Check the server's address and the token."))
            }
            if try store.endsTooEarly(answer) {
                return halt(
                    SyncError(
                        .wrongDataSet,
                        "The server's history ends before the revision this file had. The data"
                            + " set was restored from an older copy or made anew."))
            }
            if try store.confirmHistory(owner: owner, now: now) {
                state = .idle
                return start(now: now)
            }
            waitSeconds = nil
            state = .applying(
                exchange: exchange, answer: PendingAnswer(answer: answer, position: 0))
            return applyNext(exchange, now: now)
        } catch let fault as WireFault {
            return pause(SyncError(.violation, "The answer cannot be read: \(fault)"))
        } catch {
            return pause(storageError(error))
        }
    }

    /// Applies the next run of sets: whole sets, up to about `sliceRecords` records.
    private func applyNext(_ exchange: Int, now: Int64) -> [Action] {
        guard case .applying(exchange, var pending) = state else { return [] }
        let sets = pending.answer.changeSets
        var end = pending.position
        var records = 0
        while end < sets.count, end == pending.position || records < options.sliceRecords {
            // Refused sets come last and stay together with the end of the answer.
            if sets[end].conflict == true {
                end = sets.count
                break
            }
            records += sets[end].recordCount
            end += 1
        }
        let isLast = end == sets.count
        let reached = isLast ? pending.answer.maxRevision : sets[end - 1].revision ?? 0
        do {
            let report = try store.apply(
                sets[pending.position..<end], reaching: reached,
                lineage: isLast ? pending.answer.lineage : nil, dataSet: pending.answer.dataSet,
                owner: owner, now: now)
            guard let report else {
                return pause(SyncError(.busy, "Another process took over the exchange."))
            }
            if let wait = report.retryAfter { waitSeconds = max(waitSeconds ?? 0, wait) }
            unanswered -= report.receipts.count
            pending.position = end
            let notice = Action.notify(.applied(report, revision: reached))
            guard isLast else {
                state = .applying(exchange: exchange, answer: pending)
                return [notice, .applyNext(exchange: exchange)]
            }
            return [notice] + finish(pending.answer, now: now)
        } catch {
            return pause(storageError(error))
        }
    }

    private func finish(_ answer: SyncAnswer, now: Int64) -> [Action] {
        failures = 0
        uploadBytes = options.uploadBytes
        let mustSend: Bool
        do {
            mustSend = try store.outboxCount > 0
            try store.releaseLease(owner: owner)
        } catch {
            return pause(storageError(error))
        }
        if unanswered > 0, !answer.more, waitSeconds == nil {
            // Asking again at once would go on for ever.
            isCatchingUp = false
            return pause(
                SyncError(
                    .violation, "The server left \(unanswered) change sets without a verdict."))
        }
        let wasCatchingUp = isCatchingUp
        isCatchingUp = answer.more
        let goesOn = answer.more || isWoken || (mustSend && (waitSeconds == nil || wasCatchingUp))
        let notice = Action.notify(
            .exchanged(revision: answer.maxRevision, isComplete: !answer.more && !mustSend))
        state = .idle
        if goesOn { return [notice] + start(now: now) }
        if mustSend, let waitSeconds {
            let timer = number()
            state = .pausing(timer: timer)
            return [notice, .setTimer(timer, milliseconds: waitSeconds * 1_000)]
        }
        guard let interval = options.pollInterval else { return [notice] }
        let timer = number()
        state = .pausing(timer: timer)
        return [notice, .setTimer(timer, milliseconds: interval)]
    }
}

// MARK: - Failures

extension DeviceNode {
    private func refused(_ problem: Problem, retryAfter: Int64?, now: Int64) -> [Action] {
        switch (problem.status, problem.kind) {
        case (401, _): return halt(SyncError(.unauthorized, problem.detail))
        case (409, "identityReused"):
            do {
                try store.renewIdentity()
                state = .idle
                return start(now: now)
            } catch {
                return pause(storageError(error))
            }
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
            return pause(SyncError(.busy, problem.detail), atLeast: (seconds ?? 0) * 1_000)
        default: return halt(SyncError(.rejected, problem.detail))
        }
    }

    private func pause(_ error: SyncError, atLeast floor: Int64 = 0) -> [Action] {
        failures += 1
        endLease()
        let wait = max(
            floor, options.backoff.wait(failures: failures, random: store.randomBits()))
        let timer = number()
        state = .pausing(timer: timer)
        return [
            .notify(.failed(error, retryIn: wait)), .setTimer(timer, milliseconds: wait),
        ]
    }

    private func halt(_ error: SyncError) -> [Action] {
        state = .halted
        endLease()
        return [.notify(.failed(error, retryIn: nil))]
    }

    /// Lets other processes on the file have their turn. Where even that fails, the lease ends by
    /// itself.
    private func endLease() {
        try? store.releaseLease(owner: owner)
    }

    private func storageError(_ error: any Error) -> SyncError {
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
