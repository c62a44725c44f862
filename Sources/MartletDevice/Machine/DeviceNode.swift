package import MartletModel
package import MartletProtocol
internal import MartletStore
internal import SQLiteKit

/// A device as a synchronous machine: each event changes its state and returns the next actions.
///
/// It decides when to exchange, how to handle an answer, and how long to wait after a failure. It
/// uses no clock, network or tasks: a shell around it performs the actions and returns the results
/// as events.
package final class DeviceNode {
    /// An event that the shell reports to the device.
    package enum Event: Sendable {
        /// There may be something to send or fetch. If it is urgent, a person asks, and the device
        /// does not wait out a pause.
        case wake(isUrgent: Bool)
        /// A timer that was set earlier has run out.
        case timer(Int)
        /// An answer has arrived; its body is inflated.
        case answered(exchange: Int, status: Int, body: [UInt8], retryAfter: Int64?)
        /// Bytes of the exchange have been sent or received.
        case progress(exchange: Int)
        /// The exchange failed on the way. It is unknown whether the server accepted its sets.
        case failed(exchange: Int, SyncError)
        /// The device is to continue with a large answer.
        case applyNext(exchange: Int)
        /// It is time to return more free pages.
        case tidy
        /// The stream is open.
        case streamOpened(Int)
        /// A sign of life has arrived over the stream. The server sent it this many milliseconds
        /// after the device asked for the stream.
        case streamSign(Int, elapsed: Int64)
        /// A batch has arrived over the stream, as JSON.
        case streamed(Int, [UInt8])
        /// The stream has ended, or could not be opened.
        /// - Parameters:
        ///   - status: The status of the answer; nil if there was none.
        ///   - problem: The server's problem, if the server answered with one.
        ///   - inBatch: Whether part of a batch had arrived.
        case streamEnded(
            Int, status: Int?, message: String, problem: Problem? = nil, retryAfter: Int64?,
            inBatch: Bool = false)
        /// A snapshot, or the first part of one, is stored alongside the device's file, and is
        /// checked.
        case snapshotFetched(Int, SnapshotManifest)
        /// The server has no snapshot (`cut` is nil), or the network failed. The next try continues
        /// from there.
        case snapshotFailed(Int, cut: SyncError?)
        /// A part of a snapshot is stored at this path, and is checked.
        case partFetched(Int, path: String)
        /// The server no longer has the part. `newest` is its newest snapshot; nil if it could not
        /// be read.
        case partGone(Int, newest: SnapshotManifest?)
        /// The part could not be fetched.
        case partFailed(Int, SyncError, retryAfter: Int64?)
    }

    /// An action that the shell has to perform.
    package enum Action: Sendable {
        case send(exchange: Int, body: [UInt8])
        /// End the exchange: the device no longer waits for its answer.
        case cancel(exchange: Int)
        /// Bring back `timer` with this number after so many milliseconds.
        case setTimer(Int, milliseconds: Int64)
        /// Like `setTimer`, for the stream. A new stream timer cancels only the previous stream
        /// timer.
        case setStreamTimer(Int, milliseconds: Int64)
        /// Send `applyNext` soon; the user's writes may go first.
        case applyNext(exchange: Int)
        /// Send `tidy` soon; the user's writes may go first.
        case tidy
        /// Open the stream of deltas at this cursor, and report its batches.
        case openStream(Int, DeltaCursor)
        case closeStream(Int)
        /// Fetch the newest snapshot, or the first part of it, to `DeviceStore.snapshotPath`.
        case fetchSnapshot(Int)
        /// Fetch a part of a snapshot, alongside all other work.
        case fetchPart(Int, SnapshotManifest.Part, of: SnapshotManifest)
        /// Like `setTimer`, for the next try to fetch a part.
        case setPartTimer(Int, milliseconds: Int64)
        case notify(Notice)
    }

    /// A notice for the app's listeners.
    package enum Notice: Sendable {
        /// Part of an answer was applied.
        case applied(RebaseReport, revision: Revision)
        /// A batch of the stream was applied.
        case streamed(RebaseReport, revision: Revision)
        /// The stream brought this many deltas that the device has already.
        case passedOver(Int)
        /// The stream was opened (true), or has ended.
        case live(Bool)
        /// Something on the way holds the stream back (true), or no longer does.
        case late(Bool)
        /// An exchange has ended well.
        case exchanged(revision: Revision, isComplete: Bool)
        /// A part of the snapshot that the device began with was installed.
        case seeded(InstalledPart)
        /// A part could not be fetched or installed. The next try is in this many milliseconds.
        case seedingFailed(SyncError, retryIn: Int64)
        /// An exchange has failed. The next try is in this many milliseconds; nil if there is none.
        case failed(SyncError, retryIn: Int64?)
    }

    enum State {
        case idle
        case exchanging(exchange: Int, timer: Int)
        case applying(exchange: Int, answer: PendingAnswer)
        case fetchingSnapshot(Int)
        case pausing(timer: Int, isPoll: Bool)
        /// A person has to act. The device tries again when the timer ends, much later.
        case halted(timer: Int)
    }

    /// The state of fetching the parts of a snapshot.
    enum Parts {
        case none
        case fetching(Int)
        /// The device is applying a part, slice by slice.
        case installing(Int, path: String, SnapshotCursor)
        /// The next try follows when the timer runs out.
        case pausing(timer: Int)
    }

    struct PendingAnswer {
        var answer: SyncAnswer
        var position: Int
        /// Whether it must be applied in one transaction, with what is staged.
        let isWhole: Bool
        /// The number of waiting sets that the last run moved.
        var moved = 0
        /// The staged differences to apply before the answer.
        var slices: DifferenceSlices?
        /// The part to apply after the answer: its file, and the cursor to continue at.
        var part: FirstPart?
        /// Whether all of it is applied, and bytes of records that left the user's view are still there.
        var isApplied = false
    }

    package let store: DeviceStore
    let engine: any ReconciliationEngine
    package internal(set) var options: Options
    let owner: String
    var state = State.idle
    var stream = Stream.none
    var parts = Parts.none
    /// The number of consecutive parts that could not be fetched or installed.
    var partFailures = 0
    /// The number of times that the server did not have a part, since the last part arrived.
    var partsGone = 0
    private var lastNumber = 0
    var failures = 0
    /// The number of times that the server has told the device to start over, since the last answer
    /// or wait.
    var beginnings = 0
    /// The number of consecutive requests with change sets that were not answered.
    var uploadFailures = 0
    /// Whether the next request leaves the queue out, so that it still fetches other devices'
    /// changes.
    var pullsFirst = false
    /// Whether a poll was left out for a stream that may turn out to bring nothing.
    var owesPoll = false
    /// The number of consecutive streams that could not be opened or ended soon.
    var streamFailures = 0
    /// The number of consecutive answers or batches that could not be applied.
    var applyFailures = 0
    var uploadBytes: Int
    /// The bytes of change sets to ask for in an answer; fewer on a slow line.
    var answerBytes = Limits.answerBytes
    /// The bytes of the current request, before compression.
    var requestBytes = 0
    /// The time of the current request.
    var asked: Int64 = 0
    /// The time of the event that is being handled.
    var moment: Int64 = 0
    /// The time at which the pause ends.
    var pauseEnd: Int64 = 0
    /// The earliest time at which a save may start a stopped device again.
    var haltEnd: Int64 = 0
    /// The identifier of the set that was too large for a request of its own. If this happens
    /// again, the set is refused.
    var tooLarge: String?
    /// Whether the device was woken while it was busy, so that it exchanges again afterwards.
    var isWoken = false
    /// Whether the last answer was cut, so that the rest is fetched before anything is sent.
    var isCatchingUp = false
    private var waitSeconds: Int64?
    /// The change sets in the current request that have no verdict yet.
    var unanswered: Set<String> = []
    /// Whether this node does not ask for a snapshot any more.
    var hasAskedForSnapshot = false
    /// The search for the part that the device's history and the server's have in common.
    var probe: Probe?
    /// Whether that part was found just now.
    var hasProbed = false
    /// Whether a step of returning free pages is planned.
    var isTidying = false
    /// The number of consecutive downloads of a snapshot that were cut.
    var snapshotFailures = 0

    /// Creates the machine of a device.
    /// - Parameter engine: Applies remote change; nil for the store itself.
    package init(
        store: DeviceStore, options: Options = Options(),
        engine: (any ReconciliationEngine)? = nil
    ) {
        self.store = store
        self.engine = engine ?? StoreEngine(store: store)
        self.options = options
        owner = options.ownerPrefix + store.newIdentity()
        uploadBytes = options.uploadBytes
    }

    /// Whether nothing is under way and nothing is planned but the next poll.
    package var isIdle: Bool {
        if case .idle = state { return true }
        return false
    }

    /// Handles one event, and returns the actions that follow from it.
    /// - Parameter now: Milliseconds since 1970.
    package func handle(_ event: Event, now: Int64) -> [Action] {
        moment = now
        return take(event, now: now)
    }

    private func take(_ event: Event, now: Int64) -> [Action] {
        switch event {
        case .wake(let isUrgent): wake(isUrgent: isUrgent, now: now)
        case .timer(let number): timer(number, now: now)
        case .answered(let exchange, let status, let body, let retryAfter):
            answered(exchange, status: status, body: body, retryAfter: retryAfter, now: now)
        case .progress(let exchange): progress(exchange, now: now)
        case .failed(let exchange, let error): isCurrent(exchange) ? lost(error) : []
        case .applyNext(let exchange): applyNext(exchange, now: now)
        case .tidy: tidy()
        case .streamOpened(let number): streamOpened(number, now: now)
        case .streamSign(let number, let elapsed): streamSign(number, elapsed, now: now)
        case .streamed(let number, let bytes): streamed(number, bytes, now: now)
        case .streamEnded(
            let number, let status, let message, let problem, let retryAfter, let inBatch):
            streamEnded(
                number, status: status, message: message, problem: problem,
                retryAfter: retryAfter, inBatch: inBatch, now: now)
        case .snapshotFetched(let number, let manifest):
            snapshotFetched(number, manifest, now: now)
        case .snapshotFailed(let number, let cut): snapshotFailed(number, cut, now: now)
        case .partFetched(let number, let path): partFetched(number, path: path, now: now)
        case .partGone(let number, let newest): partGone(number, newest: newest, now: now)
        case .partFailed(let number, let error, let retryAfter):
            partFailed(number, error, retryAfter: retryAfter)
        }
    }

    func number() -> Int {
        lastNumber += 1
        return lastNumber
    }

    func isCurrent(_ exchange: Int) -> Bool {
        if case .exchanging(exchange, _) = state { return true }
        return false
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
            guard try isOwn(answer, exchange) else {
                return pause(Self.isOfAnother)
            }
            if let defect = answer.changeSets.lazy.compactMap(\.defect).first {
                return failedToApply(
                    SyncError(.violation, "The answer cannot be read: \(defect)"), now: now)
            }
            if let own = try store.dataSet, let other = answer.dataSet, own != other {
                return halt(
                    SyncError(
                        .wrongDataSet,
                        "The server answers for another data set than this file"
                            + " belongs to. Check the server's address and the token."))
            }
            if probe != nil { return try isCommon(now: now) }
            let standing = try store.standing
            if standing.endsTooEarly(answer) {
                if standing.rejoining != nil { return try restoredAgain(now: now) }
                return otherHistory(
                    Problem(
                        status: 409, kind: "revisionAhead",
                        detail:
                            "The server's history ends before the revision this file had. The data"
                            + " set was restored from an older copy or recreated."), now: now)
            }
            if try store.confirmHistory(owner: owner, now: now) {
                state = .idle
                return start(now: now)
            }
            if let disorder = answer.disorder(after: standing.cursor.revision) {
                return failedToApply(
                    SyncError(.violation, "The answer is out of order: \(disorder)"), now: now)
            }
            waitSeconds = nil
            let hasDifference = answer.changeSets.contains(where: \.isDifference)
            let isRejoining = standing.rejoining != nil
            let isWhole = hasDifference || isRejoining || standing.staged != nil
            // A difference that was cut leads to no true state. Nor may a difference or a snapshot
            // be applied while sent sets have no verdict: it may contain their effects.
            let isOpen = try store.hasUndecided(
                besides: unanswered, upTo: standing.rejoining)
            if isWhole, isOpen || (hasDifference || isRejoining) && answer.more {
                return try stage(answer, now: now)
            }
            var pending = PendingAnswer(answer: answer, position: 0, isWhole: isWhole)
            if isWhole, !isRejoining, try !stageForSlices(&pending, now: now) {
                return pause(Self.isTakenOver)
            }
            state = .applying(exchange: exchange, answer: pending)
            return applyNext(exchange, now: now)
        } catch let fault as WireFault {
            return pause(SyncError(unreadable: body, fault))
        } catch {
            return pause(storageError(error))
        }
    }

    /// Stages an answer that leads to a true state only together with the next one.
    private func stage(_ answer: SyncAnswer, now: Int64) throws -> [Action] {
        let isStaged = try store.stage(
            answer.changeSets, reaching: answer.maxRevision, more: answer.more,
            lineage: answer.lineage, dataSet: answer.dataSet, owner: owner,
            inPiecesOf: options.sliceRecords, now: now)
        guard isStaged else { return pause(Self.isTakenOver) }
        failures = 0
        beginnings = 0
        answeredSoon(now: now)
        // The last requests carry the change sets, so that verdicts arrive with their effects.
        isCatchingUp = answer.more
        unanswered.subtract(answer.changeSets.compactMap(\.identifier))
        if !answer.more {
            guard unanswered.isEmpty else { return pause(leftOpen()) }
            if let wait = answer.changeSets.compactMap(\.retryAfter).max() {
                return pauseQuietly(milliseconds: Backoff.milliseconds(askedFor: wait))
            }
        }
        state = .idle
        return start(now: now)
    }

    /// Returns the error for an answer that leaves some of the sent sets without a verdict. Asking
    /// again at once would repeat this for ever.
    private func leftOpen() -> SyncError {
        SyncError(
            .violation, "The server left \(unanswered.count) change sets without a verdict.")
    }

    private func pauseQuietly(milliseconds: Int64) -> [Action] {
        let timer = number()
        state = .pausing(timer: timer, isPoll: false)
        pauseEnd = moment + milliseconds
        return [.setTimer(timer, milliseconds: milliseconds)]
    }

    /// Applies the next run of sets: whole sets, up to about `sliceRecords` records.
    private func applyNext(_ exchange: Int, now: Int64) -> [Action] {
        if case .installing(exchange, let path, let cursor) = parts {
            return installNext(exchange, path, cursor, now: now)
        }
        guard case .applying(exchange, var pending) = state else { return [] }
        if pending.isApplied { return removeTraces(pending.answer, exchange, now: now) }
        if pending.slices != nil { return applySlice(pending, exchange, now: now) }
        if let part = pending.part { return installFirst(part, pending, exchange, now: now) }
        let sets = pending.answer.changeSets
        var end = pending.position
        var records = 0
        if pending.isWhole { end = sets.count }
        // Each run moves the waiting sets, so it applies at least as many records as they have.
        let most = max(options.sliceRecords, pending.moved)
        while end < sets.count, end == pending.position || records < most {
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
            let before = try store.revision
            store.asked.showsPart = pending.answer.view ?? 0 != 0
            let batch = RemoteBatch(
                sets[pending.position..<end], reaching: reached,
                lineage: isLast ? pending.answer.lineage : nil,
                before: isLast ? nil : pending.answer.end, dataSet: pending.answer.dataSet,
                owner: owner, now: now)
            guard case .applied(let report) = try engine.apply(batch).outcome else {
                return pause(Self.isTakenOver)
            }
            applyFailures = 0
            if let wait = report.retryAfter { waitSeconds = max(waitSeconds ?? 0, wait) }
            unanswered.subtract(report.receipts.map(\.identifier))
            pending.position = end
            pending.moved = report.movedSets
            if isLast, let path = try store.fetchedPart {
                pending.part = FirstPart(path: path, cursor: SnapshotCursor(), told: before)
            }
            let notice = Action.notify(
                .applied(report, revision: pending.part?.told ?? reached))
            guard isLast, pending.part == nil else {
                state = .applying(exchange: exchange, answer: pending)
                return [notice, .applyNext(exchange: exchange)]
            }
            return [notice] + finish(pending, exchange, now: now)
        } catch {
            return failedToApply(storageError(error), now: now)
        }
    }

    /// Handles an answer that cannot be applied. The device fetches it once more, then as rows, so
    /// that one bad change does not stop it.
    func failedToApply(_ error: SyncError, now: Int64) -> [Action] {
        guard error.kind == .violation else { return pause(error) }
        applyFailures += 1
        guard applyFailures <= 2 else { return pause(error) }
        state = .idle
        isCatchingUp = false
        do {
            try store.discardStaged()
        } catch {
            return pause(storageError(error))
        }
        return [.notify(.failed(error, retryIn: 0))] + start(now: now)
    }

    /// Ends an exchange.
    func end(_ answer: SyncAnswer, now: Int64) -> [Action] {
        let mustSend: Bool
        do {
            let standing = try store.standing
            mustSend =
                try standing.receipt != nil || standing.historyToConfirm != nil
                || store.outboxCount > 0
        } catch {
            return pause(storageError(error))
        }
        if !unanswered.isEmpty, !answer.more, waitSeconds == nil {
            isCatchingUp = false
            return pause(leftOpen())
        }
        let wasCatchingUp = isCatchingUp
        isCatchingUp = answer.more
        let goesOn = answer.more || isWoken || (mustSend && (waitSeconds == nil || wasCatchingUp))
        let notice = Action.notify(
            .exchanged(revision: answer.maxRevision, isComplete: !answer.more && !mustSend))
        state = .idle
        if goesOn { return [notice] + start(now: now) }
        let opening = openStreamIfWanted() + fetchPart() + beginTidying()
        if mustSend, let waitSeconds {
            let wait = Backoff.milliseconds(askedFor: waitSeconds)
            return [notice] + pauseQuietly(milliseconds: wait) + opening
        }
        return [notice] + opening + waitForPoll()
    }

    /// Sets the timer of the next poll, if there is to be one.
    func waitForPoll() -> [Action] {
        if let wait = waitForStream() {
            let timer = number()
            state = .pausing(timer: timer, isPoll: true)
            return [.setTimer(timer, milliseconds: wait)]
        }
        guard !isStreaming, let interval = options.pollInterval else { return [] }
        let timer = number()
        state = .pausing(timer: timer, isPoll: true)
        return [.setTimer(timer, milliseconds: interval)]
    }
}
