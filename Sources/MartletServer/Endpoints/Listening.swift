internal import MartletModel
internal import MartletProtocol
internal import MartletServerCore
internal import Synchronization

/// Follows a data set for one listener, by whichever transport the batches travel.
struct Listening: Sendable {
    /// The reason why the listening ended.
    enum Ending: Sendable {
        /// The token is no longer good.
        case unauthorized(TokenDenial)
        case stopping
        case problem(Problem)
    }

    /// The most bytes of one batch, apart from its first change set.
    static let batchBytes = 256 << 10
    /// The size in bytes above which a listener that also exchanges fetches a batch itself. At 23
    /// kbit/s, so many bytes take 11 s.
    static let entryBytes = 32 << 10

    let handler: RequestHandler
    let service: DataSetService
    let token: [UInt8]
    /// The token's record when the listening began.
    let record: TokenRecord

    /// A batch that was made before the listening began, and the claim that limits how many are made at a
    /// time. The listening takes it and lets go of it, however long it lasts.
    final class FirstBatch: Sendable {
        private let batch: Mutex<DeltaBatchBytes?>
        let claim: AnswerClaim
        /// The person whom it was made for.
        let principal: Principal

        init(_ batch: DeltaBatchBytes, _ claim: AnswerClaim, for principal: Principal) {
            self.batch = Mutex(batch)
            (self.claim, self.principal) = (claim, principal)
        }

        /// Returns the batch the first time, and nil after that.
        func take() -> DeltaBatchBytes? {
            batch.withLock { batch in
                defer { batch = nil }
                return batch
            }
        }
    }

    /// Sends the batches that exist, then new ones as they arise, until one of the endings.
    ///
    /// Nothing is queued. The next batch is made when the last one has been sent, and it holds
    /// everything that exists by then.
    ///
    /// - Parameters:
    ///   - first: The batch after the request's revision; nil if it has still to be made.
    ///   - send: Sends a batch, calls its second argument when the connection has the bytes, and then
    ///     waits while the listener reads slowly. The batch may be large, so nothing holds it during the
    ///     wait.
    ///   - quiet: Gives a sign of life, once in each `heartbeat` of the handler.
    /// - Throws: The errors of `send` and `quiet`, `CancellationError`, and the storage's failures.
    func run(
        _ start: DeltaRequest, _ first: FirstBatch? = nil,
        send: (_ batch: consuming DeltaBatchBytes, _ handedOver: () -> Void) async throws -> Void,
        quiet: () async throws -> Void
    ) async throws -> Ending {
        var generation = try await handler.tokenWatch.generation(handler.tokens)
        var request = start
        if let first {
            // With other rights meanwhile, the listener may be sent other records.
            if let batch = first.take(), first.principal == start.principal {
                request.advance(past: batch)
                if !batch.isEmpty { try await send(consume batch) { first.claim.giveBack() } }
            }
            first.claim.giveBack()
        }
        var sign = ContinuousClock.now
        while true {
            try Task.checkCancellation()
            let current = try await handler.tokenWatch.generation(handler.tokens)
            if current != generation || left.map({ $0 <= .zero }) ?? false {
                do {
                    let principal = try await handler.record(of: token).principal
                    if principal != request.principal {
                        // With other roles, the listener may be sent other records.
                        (request.principal, request.mustExchange) = (principal, true)
                    }
                } catch let denial as TokenDenial {
                    return .unauthorized(denial)
                }
                generation = current
            }
            // Other batches are made once the connection has the bytes of this one.
            let claim = AnswerClaim(of: RequestHandler.party(record))
            switch await batch(request, claim) {
            case .failure(let problem):
                return service.signal.isStopped ? .stopping : .problem(problem)
            case .success(let batch) where !batch.isEmpty:
                request.advance(past: batch)
                let goesOn = batch.more || request.wantsRows
                try await send(consume batch) { claim.giveBack() }
                if ContinuousClock.now - sign >= handler.heartbeat {
                    sign = .now
                    try await quiet()
                }
                if goesOn { continue }
            case .success(let batch): request.note(empty: batch)
            }
            claim.giveBack()
            let pause = min(handler.heartbeat, max(left ?? handler.heartbeat, .milliseconds(1)))
            if await !service.signal.wait(
                beyond: request.known, for: pause, concerning: request.concern)
            {
                try Task.checkCancellation()
                if service.signal.isStopped { return .stopping }
                sign = .now
                try await quiet()
            }
        }
    }

    /// The time for which the token is still good; nil if it does not expire.
    private var left: Duration? {
        record.expires.map { .milliseconds($0 - handler.now()) }
    }

    private func batch(
        _ request: DeltaRequest, _ claim: AnswerClaim
    ) async -> Result<DeltaBatchBytes, Problem> {
        if let made = service.madeDeltas(request) { return .success(made) }
        return await service.deltas(request, claim)
    }
}
