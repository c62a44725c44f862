/// A kind of fault in a simulation, as reports count it.
public enum FaultKind: String, Hashable, Sendable, CaseIterable, Codable {
    /// A request did not arrive.
    case lostRequest
    /// An answer was lost after the server had done its work.
    case lostAnswer
    /// A request or an answer arrived twice.
    case doubledMessage
    /// A message arrived before one that had been sent earlier.
    case overtaking
    /// A message took seconds because of its bytes.
    case slowLine
    /// A network answered with its own page for a while.
    case portal
    /// A proxy answered in place of the server.
    case strangeAnswer
    /// A device received the answer to another device, or to an earlier request.
    case mixedAnswer
    /// A device was cut off from the network for a while.
    case partition
    /// A device was switched off, between two operations or in one of its disk.
    case deviceCrash
    /// The server was switched off.
    case serverCrash
    /// An operation of a disk failed.
    case diskError
    /// A disk was full.
    case diskFull
    /// A device's clock jumped.
    case clockJump
    /// A device dropped its tables and refetched everything.
    case newBeginning
    /// A stream was cut while a batch was being sent.
    case streamCut
    /// A single batch of a stream was lost, or arrived twice or late.
    case strayBatch
    /// A device received a snapshot that is older than the server's state.
    case oldSnapshot
    /// A snapshot was lost or damaged on the way.
    case spoiltSnapshot
    /// The server emptied old entries of its log.
    case compaction
    /// A machine got the app's next version, if the simulation has one.
    case update
}

extension FaultPlan {
    /// The kinds of faults that can occur with this plan.
    public var kinds: [FaultKind] {
        FaultKind.allCases.filter { isWanted($0) }
    }

    private func isWanted(_ kind: FaultKind) -> Bool {
        switch kind {
        case .lostRequest: lostRequests > 0
        case .lostAnswer: lostAnswers > 0
        case .doubledMessage: doubledRequests + doubledAnswers > 0
        case .overtaking: longestDelay > FaultPlan.none.longestDelay
        case .slowLine: bytesPerSecond > 0
        case .portal: portals > 0
        case .strangeAnswer: strangeAnswers > 0
        case .mixedAnswer: mixedAnswers > 0
        case .partition: partitions > 0
        case .deviceCrash, .serverCrash: crashes + diskCrashes > 0
        case .diskError, .diskFull: diskErrors > 0
        case .clockJump: clockJumps > 0
        case .newBeginning: newBeginnings > 0
        case .streamCut: streamChanges > 0 && streamCuts > 0
        case .strayBatch: streamChanges > 0 && strayBatches > 0
        case .oldSnapshot: snapshots > 0 && oldSnapshots > 0
        case .spoiltSnapshot: snapshots > 0 && spoiltSnapshots > 0
        case .compaction: compactions > 0
        case .update: false
        }
    }
}
