internal import MartletModel
internal import MartletProtocol
internal import MartletStore

/// Starts an exchange when the device is woken or a timer ends.
extension DeviceNode {
    func wake(isUrgent: Bool, now: Int64) -> [Action] {
        switch state {
        case .idle, .pausing(_, isPoll: true):
            if isUrgent { endPartPause() }
            return start(now: now)
        case .exchanging, .applying, .fetchingSnapshot:
            isWoken = true
            return []
        case .pausing, .halted:
            guard isUrgent else { return comeSooner(now: now) }
            endPartPause()
            return start(now: now)
        }
    }

    func timer(_ number: Int, now: Int64) -> [Action] {
        if case .pausing(number, let exchangesFirst) = stream {
            return reopenStream(exchangesFirst: exchangesFirst, now: now)
        }
        if case .pausing(number) = parts { return resumeParts() }
        switch state {
        case .exchanging(let exchange, number):
            return [.cancel(exchange: exchange)]
                + lost(SyncError(.offline, "The server did not answer in time."))
        case .halted(number): return start(now: now)
        case .pausing(number, let isPoll):
            guard isPoll, isStreaming, !isBehindStream else { return start(now: now) }
            if case .open(let open) = stream { owesPoll = !open.isAlive }
            state = .idle
            return []
        default: return []
        }
    }

    func start(now: Int64) -> [Action] {
        owesPoll = false
        do {
            if probe != nil { return try ask(now: now) }
            let standing = try store.standing
            if options.usesSnapshots, !hasAskedForSnapshot, standing.canBeginWithSnapshot {
                return fetchSnapshot()
            }
            // This was found out earlier. The server may have been restored again since.
            if standing.rejoining != nil, standing.staged == nil, !hasProbed,
                !standing.mustReplaceRows
            {
                if standing.hasAppliedSlices {
                    return try search(below: standing.endOfHistory, now: now)
                }
                try store.stopRejoining()
            }
            hasProbed = false
            let exchange = number()
            let gathered = try store.gather(
                owner: owner, isGone: options.isOwnerGone, lease: options.exchangeTimeout * 2,
                byteLimit: uploadBytes,
                answerBytes: answerBytes < Limits.answerBytes ? answerBytes : nil,
                name: name(of: exchange), includesChanges: !isCatchingUp && !pullsFirst,
                wantsRows: applyFailures >= 2, now: now)
            switch gathered {
            case .leased(let until):
                let timer = number()
                state = .pausing(timer: timer, isPoll: false)
                return [.setTimer(timer, milliseconds: max(50, min(until - now, 5_000)))]
            case .request(let body, let changeSets):
                unanswered = Set(changeSets)
                isWoken = false
                return send(exchange, body, now: now)
            }
        } catch {
            return pause(storageError(error))
        }
    }
}
