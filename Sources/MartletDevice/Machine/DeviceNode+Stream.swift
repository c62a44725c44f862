internal import MartletModel
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit

/// Keeps the stream of deltas: opens it once the device is up to date, and reopens it when it ends.
///
/// Batches of the stream are applied in the same way as answers. If one cannot be applied in its
/// turn (a gap, a difference, a bad delta), an exchange fetches its changes.
extension DeviceNode {
    /// The state of the stream.
    enum Stream {
        case none
        case opening(Int, asked: Int64)
        case open(OpenStream)
        /// The stream is opened again when the timer runs out.
        /// - Parameter exchangesFirst: Whether an exchange comes first, because the last stream was
        ///   cut within its first batch.
        case pausing(timer: Int, exchangesFirst: Bool)
    }

    /// An open stream.
    struct OpenStream {
        let number: Int
        /// The time at which it was opened.
        let since: Int64
        /// The time at which it was asked for; moved back if the clock was set back.
        var asked: Int64
        /// Whether a sign of life arrived in time.
        var isAlive = false
        /// Whether any batch arrived completely.
        var hasBrought = false
        /// The revision after which the stream continues, if it brought changes that could not be
        /// applied.
        var goesOn: Revision = 0
        /// The number of consecutive exchanges that did not reach that revision.
        var shortfalls = 0
        /// The time since which batches arrive late; nil if they do not.
        var lateSince: Int64?
        /// The number of consecutive signs of life in time since then.
        var promptSigns = 0
    }

    /// Whether the stream is open and brings changes within moments.
    package var isStreaming: Bool {
        if case .open(let open) = stream { return open.lateSince == nil }
        return false
    }

    /// Whether the stream continues after a revision that the device has not reached: another
    /// server, which did not know all of it yet, may have answered the exchange.
    var isBehindStream: Bool {
        guard case .open(let open) = stream, let revision = try? store.revision else {
            return false
        }
        return revision < open.goesOn
    }

    /// Returns the milliseconds until the next exchange that tries to reach the revision at which
    /// the stream goes on; nil if the device has reached it.
    func waitForStream() -> Int64? {
        guard case .open(var open) = stream else { return nil }
        open.shortfalls = isBehindStream ? open.shortfalls + 1 : 0
        stream = .open(open)
        guard open.shortfalls > 0 else { return nil }
        return backoff.wait(failures: open.shortfalls, random: store.randomBits())
    }

    /// Turns the stream on or off.
    package func setLive(_ isLive: Bool, now: Int64) -> [Action] {
        options.isLive = isLive
        moment = now
        if isLive {
            guard case .idle = state else {
                if case .pausing(_, isPoll: true) = state { return openStreamIfWanted() }
                return []
            }
            return openStreamIfWanted()
        }
        defer { stream = .none }
        switch stream {
        case .none, .pausing: return []
        case .opening(let number, _): return [.closeStream(number)]
        case .open(let open):
            stream = .none
            return [.closeStream(open.number), .notify(.live(false))] + pollWhenIdle()
        }
    }

    /// Changes the interval of polls.
    /// - Parameter interval: Milliseconds; nil to exchange only when woken.
    package func setPollInterval(_ interval: Int64?) -> [Action] {
        options.pollInterval = interval
        switch state {
        case .idle: return waitForPoll()
        case .pausing(_, isPoll: true):
            state = .idle
            return waitForPoll()
        default: return []
        }
    }

    func openStreamIfWanted() -> [Action] {
        guard options.isLive, case .none = stream else { return [] }
        return openStream()
    }

    /// Handles the end of the pause after a stream.
    func reopenStream(exchangesFirst: Bool, now: Int64) -> [Action] {
        stream = .none
        switch state {
        case .idle, .pausing(_, isPoll: true):
            return exchangesFirst && options.isLive ? start(now: now) : openStreamIfWanted()
        case .pausing:
            // The exchange that is to be tried again opens the stream.
            return exchangesFirst ? [] : openStreamIfWanted()
        case .exchanging, .applying, .fetchingSnapshot, .halted:
            // When that is done, the stream begins at a later revision.
            return []
        }
    }

    private func openStream() -> [Action] {
        do {
            let number = number()
            let standing = try store.standing
            let cursor = DeltaCursor(
                since: standing.revision, clientID: try store.clientID,
                dataSet: try store.dataSet, lineage: standing.lineage)
            stream = .opening(number, asked: moment)
            return [.openStream(number, cursor)]
        } catch {
            return retryStream(after: nil)
        }
    }

    func streamOpened(_ number: Int, now: Int64) -> [Action] {
        guard case .opening(number, let asked) = stream else { return [] }
        stream = .open(OpenStream(number: number, since: now, asked: asked))
        return [.notify(.live(true))]
    }

    func streamed(_ number: Int, _ bytes: [UInt8], now: Int64) -> [Action] {
        guard case .open(var open) = stream, open.number == number else { return [] }
        open.hasBrought = true
        stream = .open(open)
        do {
            let batch = try SyncCoder.decodeDeltaBatch(bytes)
            // The device exchanges up to there if it cannot apply the batch, or if the batch says
            // so.
            let target = batch.goesOn ?? batch.nextVersion
            defer { noteUnlessReached(target) }
            switch try engine.apply(RemoteBatch(batch, now: now)).outcome {
            case .old(let count): return count > 0 ? [.notify(.passedOver(count))] : []
            case .outdated, .installed: return []
            case .needsExchange: return wake(isUrgent: false, now: now)
            case .applied(let report):
                applyFailures = 0
                // Only a batch that brings something shows that the stream works; a cache may
                // repeat old ones.
                streamFailures = 0
                unanswered.subtract(report.receipts.map(\.identifier))
                return [.notify(.streamed(report, revision: batch.nextVersion))]
            }
        } catch let fault as WireFault {
            return failedToApplyBatch(
                SyncError(.violation, "The stream cannot be read: \(fault)"), now: now)
        } catch let error as SyncError where error.kind == .wrongDataSet {
            // The stream may be another device's. An exchange finds out.
            return closeStream() + retryStream(after: nil) + wake(isUrgent: false, now: now)
        } catch {
            return failedToApplyBatch(storageError(error), now: now)
        }
    }

    /// Notes a revision that the following exchange has to reach, because the stream will not bring
    /// it.
    private func noteUnlessReached(_ target: Revision) {
        guard case .open(var open) = stream else { return }
        open.goesOn = max(open.goesOn, target)
        stream = .open(open)
    }

    /// Handles a sign of life. A proxy may hold the stream back. As long as it does, the device
    /// also polls, as often as without a stream.
    func streamSign(_ number: Int, _ elapsed: Int64, now: Int64) -> [Action] {
        guard case .open(var open) = stream, open.number == number else { return [] }
        open.asked = min(open.asked, now - elapsed)
        let lateness = now - open.asked - elapsed
        let isLate = lateness > options.heldBack
        if !isLate {
            open.isAlive = true
            owesPoll = false
        }
        open.promptSigns = lateness > options.heldBack / 2 ? 0 : open.promptSigns + 1
        guard let since = open.lateSince else {
            if isLate { open.lateSince = now }
            stream = .open(open)
            return isLate ? [.notify(.late(true))] + pollWhenIdle() : []
        }
        let isOver = open.promptSigns >= Self.promptSigns
        if isOver { open.lateSince = nil }
        stream = .open(open)
        if isOver { return [.notify(.late(false))] }
        guard now - since >= options.streamRetry else { return [] }
        // The stream may take another way by now, or the device's clock was moved.
        return closeStream() + retryStream(after: nil) + pollWhenIdle()
    }

    /// The number of signs of life in time after which the stream no longer counts as held back.
    private static var promptSigns: Int { 4 }

    /// Starts an exchange that fetches the changes that the stream could not bring.
    private func failedToApplyBatch(_ error: SyncError, now: Int64) -> [Action] {
        if error.kind == .violation { applyFailures += 1 }
        switch state {
        case .idle, .pausing(_, isPoll: true):
            guard error.kind == .violation else { return pause(error) }
            return [.notify(.failed(error, retryIn: 0))] + start(now: now)
        default:
            isWoken = true
            return [.notify(.failed(error, retryIn: 0))]
        }
    }

    func closeStream() -> [Action] {
        defer { stream = .none }
        switch stream {
        case .none, .pausing: return []
        case .opening(let number, _): return [.closeStream(number)]
        case .open(let open): return [.closeStream(open.number), .notify(.live(false))]
        }
    }

    func streamEnded(
        _ number: Int, status: Int?, message: String, problem: Problem?, retryAfter: Int64?,
        inBatch: Bool, now: Int64
    ) -> [Action] {
        let ended: OpenStream?
        switch stream {
        case .open(let open) where open.number == number: ended = open
        case .opening(number, _): ended = nil
        default: return []
        }
        stream = .none
        if let ended, now - ended.since >= options.steadyStream { streamFailures = 0 }
        let notices: [Action] = ended == nil ? [] : [.notify(.live(false))]
        let isOfServer = problem?.isOfServer == true
        switch status {
        case 401 where isOfServer: return notices + halt(SyncError(.unauthorized, message))
        case 401 where problem == nil, 403 where isOfServer, 409 where isOfServer:
            // An exchange gets the same answer, and handles it.
            return notices + retryStream(after: nil) + wake(isUrgent: false, now: now)
        case 400, 404, 405, 406, 501:
            return notices + retryStream(after: options.streamRetry) + pollWhenIdle()
        default:
            // One batch that was cut may be bad luck. If the stream brought nothing else, the next
            // one would be cut in it too.
            let isStuck = inBatch && ended?.hasBrought != true
            let floor = retryAfter.map {
                Backoff.milliseconds(askedFor: $0, byServer: isOfServer)
            }
            return notices + retryStream(after: floor, exchangesFirst: isStuck) + pollWhenIdle()
        }
    }

    private func pollWhenIdle() -> [Action] {
        guard case .idle = state else { return [] }
        // Otherwise streams that open and bring nothing, or bring it late, would put polls off for
        // ever.
        return owesPoll ? start(now: moment) : waitForPoll()
    }

    private func retryStream(after floor: Int64?, exchangesFirst: Bool = false) -> [Action] {
        streamFailures += 1
        let wait = max(
            floor ?? 0,
            backoff.wait(failures: streamFailures, random: store.randomBits()))
        let timer = number()
        stream = .pausing(timer: timer, exchangesFirst: exchangesFirst)
        return [.setStreamTimer(timer, milliseconds: wait)]
    }
}
