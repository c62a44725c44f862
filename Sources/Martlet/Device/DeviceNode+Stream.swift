internal import MartletCore
internal import MartletProtocol
internal import MartletStore
internal import SQLiteKit

/// The stream of deltas: opened once the device is up to date, and opened again when it ends.
///
/// What the stream brings goes through the same door as an answer. Whatever cannot be applied in
/// its turn (a gap, a difference, a bad delta) is fetched by an exchange.
extension DeviceNode {
    /// What has become of the stream.
    enum Stream {
        case none
        case opening(Int)
        case open(OpenStream)
        /// To be opened again when the timer runs out.
        /// - Parameter exchangesFirst: What comes next did not get through the last one.
        case pausing(timer: Int, exchangesFirst: Bool)
    }

    /// A stream that is there.
    struct OpenStream {
        let number: Int
        /// When it came about.
        let since: Int64
        /// Whether any batch came whole.
        var hasBrought = false
    }

    /// Whether the stream is open.
    package var isStreaming: Bool {
        if case .open = stream { return true }
        return false
    }

    /// Turns the stream on or off.
    package func setLive(_ isLive: Bool, now: Int64) -> [Action] {
        options.isLive = isLive
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
        case .opening(let number): return [.closeStream(number)]
        case .open(let open):
            stream = .none
            return [.closeStream(open.number), .notify(.live(false))] + pollWhenIdle()
        }
    }

    /// Changes how often to poll; nil: only when woken.
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

    /// The pause after a stream is over.
    func reopenStream(exchangesFirst: Bool, now: Int64) -> [Action] {
        stream = .none
        switch state {
        case .idle, .pausing(_, isPoll: true):
            return exchangesFirst && options.isLive ? start(now: now) : openStreamIfWanted()
        case .pausing:
            // The exchange that is to be tried again opens it.
            return exchangesFirst ? [] : openStreamIfWanted()
        case .exchanging, .applying, .fetchingSnapshot, .halted:
            // Once it is done the stream begins further on.
            return []
        }
    }

    private func openStream() -> [Action] {
        do {
            let number = number()
            let cursor = DeltaCursor(
                since: try store.revision, clientID: try store.clientID,
                dataSet: try store.dataSet, lineage: try store.lineage)
            stream = .opening(number)
            return [.openStream(number, cursor)]
        } catch {
            return retryStream(after: nil)
        }
    }

    func streamOpened(_ number: Int, now: Int64) -> [Action] {
        guard case .opening(number) = stream else { return [] }
        stream = .open(OpenStream(number: number, since: now))
        return [.notify(.live(true))]
    }

    func streamed(_ number: Int, _ bytes: [UInt8], now: Int64) -> [Action] {
        guard case .open(var open) = stream, open.number == number else { return [] }
        open.hasBrought = true
        stream = .open(open)
        streamFailures = 0
        do {
            let batch = try SyncCoder.decodeDeltaBatch(bytes)
            switch try store.apply(batch, now: now) {
            case .old: return []
            case .needsExchange: return wake(isUrgent: false, now: now)
            case .applied(let report, let revision):
                applyFailures = 0
                unanswered.subtract(report.receipts.map(\.identifier))
                return [.notify(.streamed(report, revision: revision))]
            }
        } catch let fault as WireFault {
            return failedToApplyBatch(
                SyncError(.violation, "The stream cannot be read: \(fault)"), now: now)
        } catch let error as SyncError where error.kind == .wrongDataSet {
            return closeStream() + halt(error)
        } catch {
            return failedToApplyBatch(storageError(error), now: now)
        }
    }

    /// An exchange fetches what the stream could not bring in.
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
        case .opening(let number): return [.closeStream(number)]
        case .open(let open): return [.closeStream(open.number), .notify(.live(false))]
        }
    }

    func streamEnded(
        _ number: Int, status: Int?, message: String, retryAfter: Int64?, inBatch: Bool, now: Int64
    ) -> [Action] {
        let ended: OpenStream?
        switch stream {
        case .open(let open) where open.number == number: ended = open
        case .opening(number): ended = nil
        default: return []
        }
        stream = .none
        if let ended, now - ended.since >= options.steadyStream { streamFailures = 0 }
        let notices: [Action] = ended == nil ? [] : [.notify(.live(false))]
        switch status {
        case 401: return notices + halt(SyncError(.unauthorized, message))
        case 403, 409:
            // An exchange is told the same, and says what it means.
            return notices + retryStream(after: nil) + wake(isUrgent: false, now: now)
        case 400, 404, 405, 406, 501:
            return notices + retryStream(after: options.streamRetry) + pollWhenIdle()
        default:
            // A batch that was cut once may have had bad luck; where it is all that came, the next
            // stream would end in it too.
            let isStuck = inBatch && ended?.hasBrought != true
            let floor = retryAfter.map { Backoff.milliseconds(askedFor: $0) }
            return notices + retryStream(after: floor, exchangesFirst: isStuck) + pollWhenIdle()
        }
    }

    private func pollWhenIdle() -> [Action] {
        if case .idle = state { return waitForPoll() }
        return []
    }

    private func retryStream(after floor: Int64?, exchangesFirst: Bool = false) -> [Action] {
        streamFailures += 1
        let wait = max(
            floor ?? 0,
            options.backoff.wait(failures: streamFailures, random: store.randomBits()))
        let timer = number()
        stream = .pausing(timer: timer, exchangesFirst: exchangesFirst)
        return [.setStreamTimer(timer, milliseconds: wait)]
    }
}
